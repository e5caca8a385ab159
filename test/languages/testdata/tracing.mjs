// Runs one attempt, and prints its log records.
const sdk = new URL('./node_modules/@holdfast-jobs/holdfast/lib', import.meta.url).href;
const { setUp, flush } = await import(`${sdk}/tracing.js`);
const { Attempt } = await import(`${sdk}/attempt.js`);
await setUp();
let trace;
try {
  ({ trace } = await import('@opentelemetry/api'));
} catch { /* it is not installed */ }
const logs = [];
const run = async (job) => {
  await null;
  const look = async () => job.log.info('within', { n: 1 });
  if (!trace) return look();
  return trace.getTracer('test').startActiveSpan('look it up', async (span) => {
    await look();
    span.end();
  });
};
const start = {
  handle: 1, jobId: 'job-1', jobType: 'LOOK', tenant: 'default', payload: Buffer.from('null'), attempt: 1, maxAttempts: 1,
  fence: 1, timeoutMs: 60_000, leaseMs: 60_000, traceparent: process.argv[2], tracestate: 'vendor=blue',
};
const attempt = new Attempt(start, { run }, { log: (_, record) => logs.push(JSON.parse(record.attributes)) }, 0);
await attempt.perform();
await flush();
console.log(JSON.stringify(logs));
process.exit(0);
