// What hey-api must make of the description, checked by tsc only.
import { getJob, submitJob } from "./generated";
import type { BatchEnd, Plugin, Submission } from "./generated";

export const absent: Submission = { jobType: "SLEEP_JOB" };
export const none: Submission = { jobType: "SLEEP_JOB", tags: null, priority: null, runAt: null };

export const skipped = (plugin: Plugin): string[] => plugin.skippedJobTypes ?? [];
export const accepted = (end: BatchEnd): number => end.accepted;

export async function submitAndWait(): Promise<string> {
  const body: Submission = { jobType: "SLEEP_JOB", payload: { sleepSeconds: 1 }, tags: ["nightly"] };
  const { data: job } = await submitJob({ body, headers: { "Idempotency-Key": "order-4711" }, throwOnError: true });
  const { data: ended } = await getJob({ path: { id: job.jobId }, query: { wait: "30s" }, throwOnError: true });
  return ended.status;
}
