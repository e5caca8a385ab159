-- Up to $2 workflows after $1 that have not finished; only those that are being canceled if $3.
-- Index: workflows_unfinished.
select workflow_id
from workflows
where finished_at is null and workflow_id > $1 and (not $3 or canceled_at is not null)
order by workflow_id
limit $2;
