class BatchSpanProcessor:
    def __init__(self, exporter, schedule_delay_millis=None):
        self.delay = schedule_delay_millis
