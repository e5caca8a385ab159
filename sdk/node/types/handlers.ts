// What TypeScript sees of handlers. It is checked, not run.
import {
  Cancel, CodeOptions, Failure, Handler, Job, Permanent, Reason, RetryAfter, RetryPolicy, Snooze, Stopped,
  exponentialBackoff, fixedBackoff, handler, immediateRetry, serve,
} from '@holdfast-jobs/holdfast';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
const same = <A, B>(_: Same<A, B>) => {};

interface Letter {
  to: string;
  copies?: number;
}

const print = handler('PRINT', async (job: Job<Letter>) => {
  same<typeof job.payload, Letter>(true);
  same<typeof job.cancelReason, Reason | undefined>(true);
  const begunAt = job.resume(0);
  same<typeof begunAt, number>(true);
  job.log.info('printing', { to: job.payload.to });
  job.checkpoint(1);
  job.progress({ page: 1 });
  job.submit('NOTIFY', { to: job.payload.to }, { delayMs: 1000, runAt: undefined, tags: ['mail'] });
  await fetch('http://127.0.0.1', { signal: job.signal });
  const raw: string = job.rawPayload.toString('utf8');
  if (raw === '') throw new Permanent('empty', { code: 'empty', cause: job.signal.reason });
  // @ts-expect-error: there is no such member
  job.payload.nobody;
  return { pages: 3 };
}, { timeoutMs: 1000, maxAttempts: 3, retry: exponentialBackoff(1000, 2, 60_000), schema: { type: 'object' },
  terms: { concurrencyKey: '/to', keyClass: 'printer', onConflict: 'queue' } });
same<typeof print, Handler<Letter, Promise<{ pages: number }>>>(true);

const untyped = handler('ANY', (job) => job.payload.anything);

// @ts-expect-error: an unknown option
handler('OTHER', () => {}, { timeout: 5, retry: fixedBackoff(5) });

// @ts-expect-error: an unknown word
handler('OTHER', () => {}, { terms: { concurrencyKey: '/to', keyClass: 'printer', onConflict: 'fight' } });

// @ts-expect-error: the payload does not fit
print.run(new Job({ payload: { to: 1 } }));

export async function test(): Promise<void> {
  const job = new Job<Letter>({ payload: { to: 'me' }, attempt: 2, checkpoint: 1 });
  const { pages } = await print.run(job);
  same<typeof pages, number>(true);
  job.stop(Reason.shutdown);
  job.stop('timeout');
}

const errors: Error[] = [
  new Failure('no', { permanent: true, retryAfterMs: 5 }), new RetryAfter(5), new Snooze(5), new Cancel(), new Stopped(Reason.canceled),
];
const codes: CodeOptions = { code: 'x' };
const policy: RetryPolicy = immediateRetry();

export const main = () => serve([print, untyped], { version: '1', concurrency: 2 });
export { codes, errors, policy };
