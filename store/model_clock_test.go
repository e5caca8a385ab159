package store

import (
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// epoch is the time of the frozen clock at the beginning of each sequence.
var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// frozenClock replaces all of the server's clocks by one that stands still until a test sets
// it. So every time in the database is known to the second, however slow the machine is.
const frozenClock = `
	create schema clock;
	create table clock.hands (at timestamptz not null);
	insert into clock.hands values ('2020-01-01Z');
	create function clock.now() returns timestamptz language plpgsql stable as 'begin return (select at from clock.hands); end';
	create function clock.clock_timestamp() returns timestamptz language plpgsql stable as 'begin return (select at from clock.hands); end';
	create function clock.statement_timestamp() returns timestamptz language plpgsql stable as 'begin return (select at from clock.hands); end';
	create function clock.s(timestamptz) returns text language sql immutable as $$
		select case when $1 is null then '-' when isfinite($1) then (extract(epoch from $1) - 1577836800)::text else 'never' end $$;
	do $$
	declare c record;
	begin
		for c in select attrelid::regclass as t, attname as name from pg_attrdef d
			join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
			where pg_get_expr(d.adbin, d.adrelid) = 'now()'
		loop
			execute format('alter table %s alter %I set default clock.now()', c.t, c.name);
		end loop;
	end $$`

// frozen returns a store on a fresh database whose clock stands still.
func frozen(t testing.TB) *Store {
	t.Helper()
	plain := open(t)
	script(t, plain, frozenClock)
	return openAt(t, onClock(t, urlOf(plain)))
}

// onClock is the address of a database for those who shall see its own clock.
func onClock(t testing.TB, address string) string {
	t.Helper()
	at, err := url.Parse(address)
	require.NoError(t, err)
	query := at.Query()
	query.Set("search_path", "clock,pg_catalog,public")
	at.RawQuery = query.Encode()
	return at.String()
}

// script runs several statements.
func script(t testing.TB, s *Store, statements string) {
	t.Helper()
	_, err := s.db.Worker.Exec(t.Context(), statements, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
}

// modelTables are what a sequence writes to.
var modelTables = []string{
	"jobs", "ready", "leases", "timers", "dead_letters", "unsuccessful_attempts", "attempt_logs", "workers", "plugin_status",
	"tallies", "tally_totals", "tally_slots", "tally_workers", "tally_attempts", "parked", "wakes", "slots", "admitted", "turns",
	"expiries", "unique_keys", "ends", "operations", "audit_log", "retention",
}

// truncateEvery is after how many sequences the files are replaced, which takes as long as ten
// sequences. Otherwise the rows are deleted.
const truncateEvery = 100

// reset empties the database and sets the clock back.
func (m *model) reset() {
	statements := "update clock.hands set at = '2020-01-01Z';"
	for i, table := range modelTables {
		switch {
		case m.world.runs%truncateEvery > 0:
			statements += "delete from " + table + ";"
		case i == 0:
			statements += "truncate " + table
		default:
			statements += ", " + table
		}
	}
	m.world.runs++
	_, err := m.world.near.db.Worker.Exec(m.ctx, statements, pgx.QueryExecModeSimpleProtocol)
	require.NoError(m.t, err)
}

// latest bounds how far the clock goes, because figures are about a day.
const latest = 20 * 3600

// step sets the clock: mostly forward, and sometimes back. Whatever happens later happened
// earlier then.
func (m *model) step(t *rapid.T) {
	by := rapid.SampledFrom([]int{1, 30, 60, 61, 3600, 3601, 7200, -1, -30, -3600}).Draw(t, "seconds")
	if m.now+by > latest {
		t.Skip("it is late")
	}
	if by < 0 {
		m.world.seen.steppedBack()
	}
	m.set(m.now + by)
}

func (m *model) set(now int) {
	m.now = now
	_, err := m.world.near.db.Worker.Exec(m.ctx, "update clock.hands set at = $1", m.at(now))
	require.NoError(m.t, err)
}

// at is a moment of the frozen clock.
func (m *model) at(second int) time.Time { return epoch.Add(time.Duration(second) * time.Second) }
