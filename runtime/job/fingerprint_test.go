package job

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestThePatternOfAnErrorLeavesOutWhatDiffersFromJobToJob(t *testing.T) {
	for _, c := range []struct{ message, pattern string }{
		{"", ""},
		{"the mail server refuses the sender", "the mail server refuses the sender"},
		{"  two\n\twords  ", "two words"},
		{"order 4711 not found", "order # not found"},
		{"took 3.25s, at most 1,000 ms", "took #s, at most #,# ms"},
		{"dial tcp 10.0.0.1:5432: connect: connection refused", "dial tcp #: connect: connection refused"},
		{"dial tcp [::1]:5432: i/o timeout", "dial tcp [::#]:#: i/o timeout"},
		{"at 2026-11-23T03:45:01.123Z: too late", "at #Z: too late"},
		{"job 019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa is gone", "job # is gone"},
		{"job 019AA3E58A5C7B0E9D0C52F1C1B4F3AA is gone", "job # is gone"},
		{"nil pointer at 0xc000123abc", "nil pointer at #"},
		{"nil pointer at 0xff", "nil pointer at #"},
		{"commit 3f2a9bc of branch main", "commit # of branch main"},
		{"token eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9 expired", "token # expired"},
		{"the key abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst", "the key #"},
		{"worker-12 of pool_3: exit status 137", "worker-# of pool_#: exit status #"},
		{`no such user "anna"`, `no such user "…"`},
		{`no such user "an \"na"!`, `no such user "…"!`},
		{"no such user 'anna', can't go on", "no such user '…', can't go on"},
		{"it's the user's fault", "it's the user's fault"},
		{`unexpected " in line 12`, `unexpected " in line #`},
		{"no such user anna@example.com.", "no such user #."},
		{"open /var/data/tenant-42/in.csv: no such file", "open /var/data/#/in.csv: no such file"},
		{"open /tmp/xkcdq/in.csv: no such file", "open /tmp/#/in.csv: no such file"},
		{"GET https://api.example.com/v1/users/4711?page=3: 503", "GET https://api.example.com/#/users/#=#: #"},
		{"key=3 key=45", "key=# key=#"},
		{"Bestellung 12 für Jürgen nicht möglich", "Bestellung # für Jürgen nicht möglich"},
		{"注文一二三四五六七八九十注文一二三四五六七八九十 12", "注文一二三四五六七八九十注文一二三四五六七八九十 #"},
		{strings.Repeat("word ", 100), strings.Repeat("word ", 40)},
		{strings.Repeat("7", 10_000), "#"},
	} {
		require.Equal(t, strings.TrimSpace(c.pattern), strings.TrimSpace(ErrorPattern(c.message)), c.message)
	}
}

func TestErrorsHaveOneFingerprintIfTheyDifferInDetailsOnly(t *testing.T) {
	one := Fingerprint("smtp_451", "order 4711: try again")
	require.Regexp(t, "^[0-9a-f]{16}$", one)
	require.Equal(t, one, Fingerprint("smtp_451", "order 12: try again"))
	require.NotEqual(t, one, Fingerprint("smtp_452", "order 12: try again"))
	require.NotEqual(t, one, Fingerprint("smtp_451", "order 12: give up"))
	require.NotEqual(t, Fingerprint("", "a"), Fingerprint("a", ""))
	require.Len(t, Fingerprint("", ""), 16)
}

func FuzzThePatternOfAnErrorIsItsOwnPattern(f *testing.F) {
	for _, seed := range []string{
		"", "#1", "a1.2b", "abcdefgh1.2ijklmnop", `it's "a' b" 3`, "/tmp/a/1", "\xff1", "a@b@c", "`1'`'", "日本 1", "'…'",
		strings.Repeat(`"`, 300), strings.Repeat("'a ", 400), strings.Repeat("a1 ", 400),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		pattern := ErrorPattern(message)
		require.LessOrEqual(t, len(pattern), maxPattern)
		require.True(t, utf8.ValidString(pattern))
		require.Equal(t, pattern, ErrorPattern(pattern))
		require.Equal(t, Fingerprint("", message), Fingerprint("", pattern))
		require.NotRegexp(t, "[0-9]", pattern)
	})
}

func BenchmarkFingerprint(b *testing.B) {
	message := strings.Repeat(`open /var/data/tenant-42/in.csv for "anna": dial tcp 10.0.0.1:5432: connection refused; `, 12)
	for b.Loop() {
		Fingerprint("io", message)
	}
}
