"""How fast memory can be read now: glibc's memchr, which reads with the widest vectors there are, looks for a byte that is not there, on
each core in a part of its own. One core or all of them, whichever is faster: on some machines one core takes all that there is.
"""

import ctypes
import mmap
import threading
import time

from serve.row16_peers import CORES

BUFFER_BYTES = 1 << 30  # no cache has it
PASSES = 5


class Reader:
    def __init__(self):
        self.memory = mmap.mmap(-1, BUFFER_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.memory.madvise(mmap.MADV_HUGEPAGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        ctypes.memset(self.address, 1, BUFFER_BYTES)  # or all pages would be one page of zeros
        self.find = ctypes.CDLL(None).memchr
        self.find.restype, self.find.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)

    def pass_over(self, threads):
        """Bytes a second of one pass."""
        part = BUFFER_BYTES // threads
        readers = [threading.Thread(target=self.find, args=(self.address + i * part, 0, part)) for i in range(threads)]
        start = time.perf_counter()
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        return part * threads / (time.perf_counter() - start)

    def sample(self):
        """The best of a few passes: what the memory gives when nobody else reads."""
        passes = [self.pass_over(threads) for threads in (1, len(CORES)) for _ in range(PASSES)]
        return {"bytes_per_s": max(passes), "passes": passes}
