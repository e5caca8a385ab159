// What openapi-typescript must make of the description, checked by tsc only.
import type { components, operations, paths } from "./generated";

type Schemas = components["schemas"];

export const absent: Schemas["Submission"] = { jobType: "SLEEP_JOB" };
export const none: Schemas["Submission"] = { jobType: "SLEEP_JOB", tags: null, priority: null, runAt: null };
export const some: Schemas["Submission"] = { jobType: "SLEEP_JOB", tags: ["nightly"], priority: 1, hold: true };

export const skipped = (plugin: Schemas["Plugin"]): string[] => plugin.skippedJobTypes ?? [];
export const accepted = (end: Schemas["BatchEnd"]): number => end.accepted;
export const key: operations["submit-job"]["parameters"]["header"] = { "Idempotency-Key": "order-4711" };
export const submit: keyof paths = "/jobs";
