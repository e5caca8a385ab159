-- Delete the limit of name $2 in scope $1, unless the configuration has set it. deleted is
-- false then.
-- Locks: its own row.
-- Index: limits_pkey.
with found as (
    select configured from limits where scope = $1 and name = $2 for update
), deleted as (
    delete from limits where scope = $1 and name = $2 and not configured
)
select not configured as deleted from found;
