"""Users of locust who wait for exponential times: together a Poisson process, nearly."""

import random

from locust import HttpUser, task

USERS, RATE = 400, 80


class Asker(HttpUser):
    def wait_time(self):
        return random.expovariate(RATE / USERS)

    @task
    def ask(self):
        self.client.get("/")
