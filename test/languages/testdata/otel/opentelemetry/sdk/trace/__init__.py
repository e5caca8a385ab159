class TracerProvider:
    def add_span_processor(self, processor):
        self.processor = processor

    def force_flush(self):
        print("flushed", self.processor.delay)
