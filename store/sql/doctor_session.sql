-- The settings named $1 whose values in this session are not $2.
-- Clock: none.
-- Index: none; settings.
select wanted.name, wanted.value as wanted, current_setting(wanted.name) as has
from unnest($1::text[], $2::text[]) as wanted (name, value)
where current_setting(wanted.name) <> wanted.value
order by wanted.name;
