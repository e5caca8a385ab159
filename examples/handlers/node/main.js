#!/usr/bin/env node
// An example plugin: three job types, each with another kind of handler.
import { setTimeout as sleep } from 'node:timers/promises';
import { Cancel, Permanent, RetryAfter, Snooze, fixedBackoff, handler, serve } from '@holdfast-jobs/holdfast';

// A span below the attempt's, if OpenTelemetry is installed.
const { trace } = await import('@opentelemetry/api').catch(() => ({}));
const spanned = (name, run) => (trace ? trace.getTracer('example').startActiveSpan(name, async (span) => {
  try {
    return await run();
  } finally {
    span.end();
  }
}) : run());

const echo = handler('NODE_ECHO', (job) => spanned('echo', async () => {
  job.log.info('echo', { text: job.payload.text });
  return { text: job.payload.text, attempt: job.attempt };
}), {
  description: 'Returns its text.',
  schema: {
    type: 'object',
    properties: { text: { type: 'string' } },
    required: ['text'],
  },
});

// It continues where it was interrupted. The signal ends the wait when the attempt must stop.
const count = handler('NODE_COUNT', async (job) => {
  const { to, stepSeconds = 1 } = job.payload;
  const begunAt = job.resume(0);
  for (let n = begunAt + 1; n <= to; n++) {
    await sleep(stepSeconds * 1000, undefined, { signal: job.signal });
    job.checkpoint(n);
    job.progress({ counted: n, of: to });
  }
  return { begunAt };
}, {
  description: 'Counts step by step, and continues after an interruption.',
  schema: {
    type: 'object',
    properties: {
      to: { type: 'integer', minimum: 1 },
      stepSeconds: { type: 'number', minimum: 0, maximum: 60 },
    },
    required: ['to'],
  },
  timeoutMs: 600_000,
});

const fail = handler('NODE_FAIL', async (job) => {
  const { how, seconds = 1 } = job.payload;
  switch (how) {
    case 'permanent':
      throw new Permanent('no such printer', { code: 'no_such_printer' });
    case 'retry_after':
      throw new RetryAfter(seconds * 1000, 'the printer is busy', { code: 'busy' });
    case 'snooze':
      // Only once: a snooze charges no attempt, so it could repeat without end.
      if (job.resume(false)) return 'slept well';
      job.checkpoint(true);
      throw new Snooze(seconds * 1000);
    case 'cancel':
      throw new Cancel('no longer needed');
    case 'slow':
      await sleep(3_600_000, undefined, { signal: job.signal });
      return undefined;
    default:
      throw new Error('out of paper');
  }
}, {
  description: 'Fails in the way that its payload names.',
  schema: {
    type: 'object',
    properties: {
      how: { enum: ['error', 'permanent', 'retry_after', 'snooze', 'cancel', 'slow'] },
      seconds: { type: 'number', minimum: 0 },
    },
    required: ['how'],
  },
  timeoutMs: 5000,
  maxAttempts: 3,
  retry: fixedBackoff(500),
});

serve([echo, count, fail], { version: '1.0', concurrency: 20 });
