/**
 * The Holdfast SDK for Node.js.
 *
 * A plugin is a program with one or more handlers; a handler runs the jobs of one type. An orchestrator starts the
 * plugin.
 *
 *     import { handler, serve } from '@holdfast-jobs/holdfast';
 *
 *     const echo = handler('ECHO', async (job: Job<{ text: string }>) => {
 *       job.log.info('echo', { text: job.payload.text });
 *       return { text: job.payload.text };
 *     });
 *
 *     serve([echo]);
 *
 * The job succeeds when the promise is fulfilled. When it is rejected, the job is retried by its type's retry policy.
 * Permanent, RetryAfter, Snooze, Cancel and Failure say otherwise.
 *
 * An attempt that must stop is asked first: `job.signal` is aborted with a Stopped error. If the handler continues,
 * its whole process is killed.
 */
/// <reference types="node" />

/** Writes log records. Attributes are written as JSON. */
export interface Logger {
  debug(message: string, attributes?: object): void;
  info(message: string, attributes?: object): void;
  warn(message: string, attributes?: object): void;
  error(message: string, attributes?: object): void;
}

/** Why an attempt must stop. */
export const Reason: {
  /** A client canceled the job. */
  readonly canceled: 'canceled';
  /** The attempt timed out. */
  readonly timeout: 'timeout';
  /**
   * The orchestrator cannot prove that it still owns the job, or the connection to it is lost. Change nothing more:
   * another attempt may start at any moment.
   */
  readonly leaseLost: 'lease_lost';
  /** The orchestrator shuts down and releases the job. The next attempt continues from the last checkpoint. */
  readonly shutdown: 'shutdown';
};
export type Reason = (typeof Reason)[keyof typeof Reason];

/** A job of the same workflow that had to end before this one could start. */
export interface Predecessor {
  /** Its name in the workflow. */
  name: string;
  id: string;
  /** False if it was skipped or canceled. */
  succeeded: boolean;
  /** Decoded from JSON; undefined if it has none. */
  result?: any;
  /** It has a result, which the orchestrator has left out: all results together are too large. */
  omitted: boolean;
}

/** What a test chooses of a job. Everything has a default. */
export interface JobInit<T = any> {
  payload?: T;
  rawPayload?: Buffer;
  id?: string;
  type?: string;
  tenant?: string;
  attempt?: number;
  maxAttempts?: number;
  fence?: number;
  createdAt?: Date;
  /** What resume returns. */
  checkpoint?: unknown;
  predecessors?: Predecessor[];
  timeoutMs?: number;
  traceparent?: string;
  tracestate?: string;
  baggage?: string;
}

/**
 * One attempt at a job whose payload is a T.
 *
 * In tests you create jobs yourself. Such a job discards its progress and checkpoints, keeps what is submitted in
 * `submitted`, and logs to standard error.
 */
export class Job<T = any> {
  constructor(job?: JobInit<T>);
  /** The payload, decoded from JSON. */
  payload: T;
  /** The JSON exactly as it was submitted. */
  rawPayload: Buffer;
  /** The job's id, the same in every attempt. Give it to other systems to deduplicate by. */
  id: string;
  type: string;
  tenant: string;
  /** Counts from 1, up to maxAttempts. */
  attempt: number;
  maxAttempts: number;
  /**
   * Grows with every attempt. Pass it to systems that can refuse a smaller one: it keeps out an earlier attempt that
   * still runs somewhere.
   */
  fence: number;
  /** When the job was submitted, by the database's clock. */
  createdAt: Date;
  /** The W3C trace context, for your own requests; empty when the job is not traced. */
  traceparent: string;
  tracestate: string;
  /** The W3C baggage of the request that submitted the job; empty for none. */
  baggage: string;

  /** Its records appear in the orchestrator's log with the job's id. It never waits. */
  get log(): Logger;

  /**
   * Shows the value, as JSON, to everyone who looks at the job. Only the last value counts. It returns before the value
   * is stored.
   *
   * It throws when the value is not JSON, when it is larger than the orchestrator takes (64 KiB unless configured
   * otherwise), and after the end of the attempt.
   */
  progress(value: unknown): void;

  /**
   * Saves the value, as JSON, for the next attempt, which gets it from resume. Only the last value counts. It returns
   * before the value is stored, but the value is stored before the attempt's outcome is. Once the orchestrator has
   * received it, it survives a crash of the process.
   *
   * It throws what progress throws. For a value that is too large (over 1 MiB unless configured otherwise), that is a
   * Permanent with the code checkpoint_too_large.
   */
  checkpoint(value: unknown): void;

  /**
   * Submits a job that follows this one. It becomes real together with the success of this attempt, in one transaction,
   * and never otherwise: if the attempt fails, snoozes, is canceled or lost, there is no such job, and the next attempt
   * submits its own. The job belongs to this job's tenant.
   *
   * It throws when the payload is not JSON, and after the end of the attempt. For more jobs than the orchestrator takes
   * (1,000 unless configured otherwise, and 4 MiB of JSON together), it throws a Permanent with the code
   * followups_too_large. The orchestrator checks the rest when the attempt has succeeded; if it refuses a job, the
   * attempt fails with the code followups_refused.
   */
  submit(jobType: string, payload?: unknown, options?: FollowUpOptions): void;
  /** What was submitted on a job of a test: the bodies of POST /jobs. */
  readonly submitted: Record<string, unknown>[];

  /** The jobs that it comes after in its workflow, in the order of `after`; empty for a job of no workflow. */
  predecessors: Predecessor[];

  /**
   * The result of the predecessor with this name, or the default if it has none, or was skipped or canceled. It throws
   * a Permanent if there is no such predecessor, or if the orchestrator has left the result out.
   */
  resultOf<R = any>(name: string): R | undefined;
  resultOf<R>(name: string, otherwise: R): R;

  /** The last checkpoint of an earlier attempt, or the default if there is none. */
  resume(otherwise: number): number;
  resume(otherwise: string): string;
  resume(otherwise: boolean): boolean;
  resume<C>(otherwise: C): C;
  resume<C = any>(): C | undefined;

  /**
   * Is aborted when the attempt must stop, with a Stopped error. Pass it to everything that waits: fetch,
   * timers/promises, streams. If a handler continues, its whole process is killed.
   */
  get signal(): AbortSignal;
  /** Whether the attempt must stop, for any reason. */
  get canceled(): boolean;
  /** Why the attempt must stop; undefined while it need not. */
  get cancelReason(): Reason | undefined;
  /** Milliseconds until the attempt times out. */
  get timeLeftMs(): number;
  /** Asks the handler to stop, as the orchestrator does; for tests. Only the first call counts. */
  stop(reason?: Reason): void;
}

/** The members of POST /jobs. What you leave out takes the default of the job type. */
export interface FollowUpOptions {
  /** The idempotency key. Within one attempt you need none. */
  key?: string;
  /** From -32767 to 32767; higher is more urgent. */
  priority?: number;
  /** Do not start before this time, or before so long has passed; at most one of the two. */
  runAt?: Date;
  delayMs?: number;
  /** Keep the job until somebody releases it. */
  hold?: boolean;
  maxAttempts?: number;
  timeoutMs?: number;
  tags?: string[];
  /** How the job shares with others: the keys themselves. */
  concurrencyKey?: string;
  concurrencyLimit?: number;
  onConflict?: 'queue' | 'cancel_newcomer' | 'cancel_oldest';
  fairnessKey?: string;
  /** Cancel the job unless it has started by then; at most one of the two. */
  expiresAt?: Date;
  ttlMs?: number;
  /** Make no other job like this one: for so long, or while it waits or runs; at most one of the two. */
  uniqueForMs?: number;
  uniqueWhileOpen?: boolean;
  /** JSON Pointers to what must be equal in the payloads of jobs that are alike; by default the whole payload. */
  uniqueBy?: string[];
  /** Tell this http or https URL when the job has ended. */
  callbackUrl?: string;
}

/** The orchestrator's configuration decides what you leave out. It also overrides timeoutMs, retry and maxAttempts. */
export interface HandlerOptions {
  /**
   * JSON Schema (2020-12) of the payload. Jobs whose payload does not fit are refused when they are submitted.
   */
  schema?: object | boolean;
  /** Limits each attempt. */
  timeoutMs?: number;
  /** How long a job waits between attempts. */
  retry?: RetryPolicy;
  /** How many attempts a job gets, the first one included. */
  maxAttempts?: number;
  /** The most attempts of this type at once in each process. */
  concurrency?: number;
  /** What the job type is for, in one line, for people. */
  description?: string;
  /** How its jobs share with others. */
  terms?: Terms;
}

/**
 * Where in the payload a job's keys are, and what is shared by them. Each place is a JSON Pointer (RFC 6901), such as
 * `/customer/id`, to a string or a number. A job whose payload has no such value, or null there, has no key. What a
 * submission says itself comes first.
 */
export interface Terms {
  /**
   * Place of what a job uses. With the class `customer` and the value 42, its key is `customer:42`. Jobs of a tenant with
   * the same key share its limit, whatever their types.
   */
  concurrencyKey?: string;
  /** What concurrency keys begin with; required with concurrencyKey. */
  keyClass?: string;
  /**
   * How many jobs of the key may run when a job of this type starts, itself included. By default the limit that operators
   * have set for the class.
   */
  concurrencyLimit?: number;
  /**
   * What happens to a job if so many run: it waits, it is canceled, or it takes the place of the oldest, which is
   * canceled. By default what operators have set for the class.
   */
  onConflict?: 'queue' | 'cancel_newcomer' | 'cancel_oldest';
  /** Place of who takes a turn: waiting jobs run in turns of their fairness keys. */
  fairnessKey?: string;
}

/** A job type with the function that runs its jobs. */
export class Handler<T = any, R = unknown> {
  constructor(jobType: string, run: (job: Job<T>) => R, options?: HandlerOptions);
  readonly jobType: string;
  /** The function itself, for tests. */
  readonly run: (job: Job<T>) => R;
}

/**
 * Makes a handler of a function, which takes a Job. What the function returns is the job's result, as JSON; undefined
 * means no result. All handlers of a process share one event loop: compute in a worker thread.
 */
export function handler<T = any, R = unknown>(
  jobType: string, run: (job: Job<T>) => R, options?: HandlerOptions,
): Handler<T, R>;

export interface ServeOptions {
  /** The plugin's version, for people. */
  version?: string;
  /** How many attempts each process runs at once. The orchestrator's configuration overrides it. */
  concurrency?: number;
}

/**
 * Serves the handlers to the orchestrator that started this process, until the orchestrator drains it.
 *
 * From now on, standard output goes to standard error, so console.log cannot disturb the protocol. The process ignores
 * SIGINT and SIGTERM: the orchestrator stops it. It ends when its standard input is closed, because then the
 * orchestrator is gone.
 *
 * If you start the program by hand, it says what it is and exits with 1.
 */
export function serve(handlers: Handler[], options?: ServeOptions): void;

export interface RetryPolicyOptions {
  backoff: 'exponential' | 'fixed' | 'immediate';
  initialDelayMs?: number;
  factor?: number;
  maxDelayMs?: number;
  jitterMin?: number;
  jitterMax?: number;
  /** A retry after a timeout does not wait. */
  immediateAfterTimeout?: boolean;
}

/**
 * How long a job waits before retry n, counted from 1:
 *
 * - `exponential`: min(maxDelayMs, initialDelayMs · factorⁿ⁻¹) · U
 * - `fixed`: initialDelayMs · U
 * - `immediate`: 0
 *
 * where U is random, between jitterMin and jitterMax.
 */
export class RetryPolicy {
  constructor(policy: RetryPolicyOptions);
}

/**
 * Waits initialDelayMs, then initialDelayMs · factor, initialDelayMs · factor² and so on, up to maxDelayMs. Each wait is
 * random within 10 % of that.
 */
export function exponentialBackoff(initialDelayMs: number, factor: number, maxDelayMs: number): RetryPolicy;
/** Waits the same time before each retry, random within 10 % of the delay. */
export function fixedBackoff(delayMs: number): RetryPolicy;
/** Retries without a wait. */
export function immediateRetry(): RetryPolicy;

/** The reason of a job's signal: the attempt must stop. Do not catch it. */
export class Stopped extends Error {
  constructor(reason: Reason);
  readonly reason: Reason;
}

export interface CodeOptions {
  /** A short, stable name, which is stored with the attempt. */
  code?: string;
  cause?: unknown;
}

export interface FailureOptions extends CodeOptions {
  /** No attempt can succeed: the job is dead-lettered. */
  permanent?: boolean;
  /** Replaces the retry policy's wait before the next attempt. */
  retryAfterMs?: number;
}

/** Fails the attempt, and says what happens next. */
export class Failure extends Error {
  constructor(message?: string, options?: FailureOptions);
  readonly code: string;
  readonly permanent: boolean;
  readonly retryAfterMs: number | undefined;
}

/** No attempt can succeed: the job is dead-lettered. */
export class Permanent extends Failure {
  constructor(message?: string, options?: CodeOptions);
}

/** Fails the attempt. The job waits this long before the next attempt, if one is left, whatever the retry policy says. */
export class RetryAfter extends Failure {
  constructor(delayMs: number, message?: string, options?: CodeOptions);
}

/** Ends the attempt without charging it. The job runs again after the delay. */
export class Snooze extends Error {
  constructor(delayMs: number);
  readonly retryAfterMs: number;
}

/** Cancels the job from within its handler. The reason goes to the log. */
export class Cancel extends Error {
  constructor(reason?: string);
  readonly reason: string;
}
