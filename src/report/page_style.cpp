// Colours are those of Okabe and Ito, which people with any colour vision tell apart; on a dark
// page lighter ones of the same order. Tables and plots are as wide as their page; what is wider
// scrolls within itself, so that the page never does.
#include "report/page_style.h"

namespace muster {
namespace {

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--bg:#fff;--fg:#1a1a1a;--muted:#555;--rule:#d5d5d5;--panel:#f6f6f6;--bad:#b00020;--bad-bg:#fdecee;
--c0:#0072b2;--c1:#b34700;--c2:#007a5a;--c3:#a3467f;--c4:#6b5b00;--c5:#3b6fb6;--c6:#333;--c7:#7a4fb0}
@media (prefers-color-scheme:dark){:root{--bg:#14161a;--fg:#e8e8e8;--muted:#b0b0b0;--rule:#3a3d44;--panel:#1d2026;--bad:#ff8a8a;
--bad-bg:#3a1a1e;--c0:#56b4e9;--c1:#f0883e;--c2:#2fc49a;--c3:#e08ec0;--c4:#e5d34a;--c5:#8fb8f5;--c6:#ddd;--c7:#bda0ee}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.45 system-ui,sans-serif}
main{max-width:96rem;margin:0 auto;padding:.75rem 1rem 3rem}
h1,h2,h3,p,li,figcaption{overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.2;margin:.5rem 0}
h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--rule)}
h3{font-size:1.05rem;margin:1.5rem 0 .5rem}
p{margin:.4rem 0;max-width:75ch}
.lead{font-size:1.05rem;font-weight:600}
.alert{color:var(--bad);background:var(--bad-bg);border-left:4px solid var(--bad);padding:.4rem .6rem;font-size:1.05rem;font-weight:600}
.bad{color:var(--bad);font-weight:700}
.none{font-weight:600}
.muted{color:var(--muted)}
.wide{overflow-x:auto;max-width:100%;margin:.75rem 0}
.wide:focus-visible{outline:2px solid var(--c0)}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:.2rem 0}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--rule);vertical-align:top;text-align:right;min-width:3.5rem}
thead th,.bad{white-space:nowrap}
th:first-child,.words td,.words th{text-align:left}
tbody th{font-weight:500}
thead th{background:var(--panel)}
.ci{display:block;color:var(--muted);font-size:.85em;white-space:nowrap}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,340px),1fr));gap:1rem}
figure{margin:.5rem 0;min-width:0;max-width:620px}
figcaption{font-weight:600}
.plot{display:block;width:100%;height:auto}
.plot text{fill:var(--muted);font:11px system-ui,sans-serif}
.grid{stroke:var(--rule);stroke-width:.6;fill:none}
.axis{stroke:var(--muted);stroke-width:1;fill:none}
.warm{fill:var(--bad);opacity:.13}
.counted{fill:var(--c2);opacity:.12}
.line{fill:none;stroke:var(--c);stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}
.range{fill:none;stroke:var(--c);stroke-width:1.1;stroke-linecap:round;opacity:.55}
.interval{fill:none;stroke:var(--c);stroke-width:1.2}
.mark{fill:var(--c);stroke:var(--c);stroke-width:1.2}
.mark.hollow{fill:var(--bg)}
.failed{stroke:var(--bad);stroke-width:1.2;fill:none}
.s0{--c:var(--c0)}.s1{--c:var(--c1)}.s2{--c:var(--c2)}.s3{--c:var(--c3)}.s4{--c:var(--c4)}.s5{--c:var(--c5)}.s6{--c:var(--c6)}.s7{--c:var(--c7)}
.line.s1,.line.s5{stroke-dasharray:7 3}.line.s2,.line.s6{stroke-dasharray:2 2}.line.s3,.line.s7{stroke-dasharray:8 3 2 3}
.legend{list-style:none;margin:.2rem 0;padding:0;font-size:.9rem;display:flex;flex-wrap:wrap;gap:.1rem 1rem}
.key{width:30px;height:10px;margin-right:.35rem}
@media print{:root{--bg:#fff;--fg:#000;--muted:#333;--rule:#bbb;--panel:#f2f2f2;--bad:#b00020;--bad-bg:#fff;
--c0:#0072b2;--c1:#b34700;--c2:#007a5a;--c3:#a3467f;--c4:#6b5b00;--c5:#3b6fb6;--c6:#333;--c7:#7a4fb0}
body{font-size:9pt}main{padding:0;max-width:none}.wide{overflow:visible}table{font-size:8pt}th,td{padding:.15rem .3rem;min-width:0;overflow-wrap:anywhere}thead th,.bad{white-space:normal}
.ci{white-space:normal}figure,tr,.alert{break-inside:avoid}h2,h3{break-after:avoid}.plots{grid-template-columns:1fr 1fr}
thead{display:table-header-group}}
@page{margin:12mm}
)";

}  // namespace

std::string_view page_style() { return kStyle; }

}  // namespace muster
