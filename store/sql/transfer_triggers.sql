-- The statements that make the tables $1 refuse changes with the message $3, but for the
-- transactions of the export $2. See transfer_pass.sql.
-- Clock: none.
-- Index: none.
select format(
    'create trigger ledger_closed before insert or update or delete or truncate on %I for each statement '
    'when (current_setting(''holdfast.transfer'', true) is distinct from %L) execute function refuse_closed(%L)',
    name, $2::text, $3::text
) as statement
from unnest($1::text[]) as tables (name);
