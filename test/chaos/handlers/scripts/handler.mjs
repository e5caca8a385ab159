#!/usr/bin/env node
// The handler of a chaos run in Node.js: see ../main.go.
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Permanent, Reason, handler, serve } from '@holdfast-jobs/holdfast';

const stat = readFileSync('/proc/self/stat', 'ascii');
const started = Number(stat.slice(stat.lastIndexOf(')') + 1).trim().split(/\s+/)[19]);

function leave(job, event, report) {
  const line = JSON.stringify({
    event, jobId: job.id, jobType: job.type, mark: job.payload.mark, attempt: job.attempt, fence: Number(job.fence), pid: process.pid,
    pidStarted: started, at: 'NOW', report,
  });
  // Nanoseconds since 1970 are too large for a number.
  const now = `${BigInt(Date.now()) * 1000000n}`;
  const file = openSync(process.env.EFFECTS, 'a', 0o644);
  try {
    writeSync(file, `${line.replace('"NOW"', now)}\n`);
  } finally {
    closeSync(file);
  }
}

const work = handler('CHAOS_NODE', async (job) => {
  leave(job, 'began');
  try {
    await sleep(job.payload.millis, undefined, { signal: job.signal });
  } catch (error) {
    const reports = { [Reason.leaseLost]: 'lost', [Reason.canceled]: 'cancels' };
    leave(job, 'ended', reports[job.cancelReason] ?? 'fails');
    throw error;
  }
  const plan = job.payload.plan?.length ? job.payload.plan : ['succeeds'];
  const report = plan[Math.min(job.attempt, plan.length) - 1];
  if (report === 'crash') process.kill(process.pid, 'SIGKILL');
  if (report === 'fails') {
    leave(job, 'ended', report);
    throw new Error('this attempt was to fail');
  }
  if (report === 'permanent') {
    leave(job, 'ended', report);
    throw new Permanent('this job was to die');
  }
  leave(job, 'effect');
  leave(job, 'ended', 'succeeds');
});

serve([work]);
