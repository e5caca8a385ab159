-- The pauses in force that concern jobs of the type $1, the plugin $2 and the tenant $3.
-- Clock: now().
-- Index: pauses_pkey.
select scope, name, reason, paused_by as by, since, until, drain
from pauses
where (until is null or until > now())
    and (scope, name) in (('all', ''), ('type', $1), ('plugin', $2), ('tenant', $3));
