-- How long until the first operation is due; nothing if there is none. One that another
-- orchestrator works on is due already.
-- Clock: now().
-- Index: operations_unfinished.
select greatest(min(due_at) - now(), interval '0') as wait
from operations
where finished_at is null
having count(*) > 0;
