-- What there is for the loops that maintain to do now, and how long it is until there is more, if
-- that is before the next look, in $1: following is an end to follow up or a workflow that is being
-- canceled; admitting is something that has happened at a gate, or a gate that is due; the
-- others are a timer, a job that expires, a look at a schedule, and a portion of an operation.
-- Clock: now(); the program receives durations, never an instant.
-- Index: none on the inboxes `ends` and `wakes`, of which any row will do; workflows_unfinished,
-- slots_wake_at, timers_run_at, expiries_expires_at, schedules_look_at, operations_unfinished.
select
    exists (select from ends) or (
        select workflow_id
        from workflows
        where finished_at is null and canceled_at is not null
        order by workflow_id
        limit 1
    ) is not null as following,
    exists (select from wakes) or (
        select wake_at from slots where wake_at is not null order by wake_at limit 1
    ) <= now() is true as admitting,
    (select run_at - now() from timers where run_at < now() + $1 order by run_at limit 1) as due,
    (select expires_at - now() from expiries where expires_at < now() + $1 order by expires_at limit 1) as expiry,
    (select look_at - now() from schedules where look_at < now() + $1 order by look_at limit 1) as tick,
    (select min(due_at) - now() from operations where finished_at is null and due_at < now() + $1) as operation;
