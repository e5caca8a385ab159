package show

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestForeignTextCannotSteerTheTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain, ünïcödé 漢字 🙂":             "plain, ünïcödé 漢字 🙂",
		"\x1b[2J\x1b]0;owned\x07":         `\x1b[2J\x1b]0;owned\x07`,
		"\u009b31mred":                    `\u009b31mred`,
		"a\nb\tc\rd":                      `a\nb\tc\rd`,
		"\u202egnp.exe":                   `\u202egnp.exe`,
		"tag\U000e0041 \ufeff\u2028":      `tag\U000e0041 \ufeff\u2028`,
		"broken \xff utf-8, whole \ufffd": `broken \xff utf-8, whole ` + "\ufffd",
		"\x7f\x00":                        `\x7f\x00`,
	} {
		require.Equal(t, want, Clean(text))
	}
	require.Equal(t, "one\n\ttwo\nthree\\x1b", CleanLines("one\r\n\ttwo\nthree\x1b"))
}

func TestJSONIsEscapedOnlyOnATerminal(t *testing.T) {
	hostile := []byte("{\"result\":\"\u009b2J \u202e \U000e0041 \u007f\",\"n\": 1}")
	var out bytes.Buffer
	require.NoError(t, Screen{Writer: &out}.JSON(hostile))
	require.Equal(t, string(hostile)+"\n", out.String())

	out.Reset()
	require.NoError(t, Screen{Writer: &out, Terminal: true}.JSON(hostile))
	require.Equal(t, `{"result":"\u009b2J \u202e \udb40\udc41 \u007f","n": 1}`+"\n", out.String())
	require.JSONEq(t, string(hostile), out.String(), "the same JSON")
	require.True(t, json.Valid(out.Bytes()))
}

func TestColumnsAlignInEveryScript(t *testing.T) {
	var out bytes.Buffer
	table := NewTable(Screen{Writer: &out}, "NAME", "N", "LAST")
	table.Row("漢字", 1, "x")
	table.Row("e\u0301te\u0301", Right("12345"), "")
	require.NoError(t, table.Flush())
	table.Row("a", int64(2), "later")
	require.NoError(t, table.Flush())
	require.Equal(t, "NAME      N  LAST\n漢字      1  x\ne\u0301te\u0301   12345\na         2  later\n", out.String())
}

func TestStylesFollowTheFlagAndTheEnvironment(t *testing.T) {
	getenv := func(values ...string) func(string) string {
		return func(name string) string {
			for _, value := range values {
				if key, set, _ := strings.Cut(value, "="); key == name {
					return set
				}
			}
			return ""
		}
	}
	var out bytes.Buffer
	require.False(t, NewScreen(&out, Auto, getenv()).Color, "not a terminal")
	require.True(t, NewScreen(&out, Always, getenv("NO_COLOR=1")).Color)
	require.False(t, NewScreen(&out, Never, getenv()).Color)
	require.Equal(t, "\x1b[31mbad\x1b[0m", Screen{Color: true}.Paint(Bad, "bad"))
	require.Equal(t, "bad", Screen{}.Paint(Bad, "bad"))

	table := NewTable(Screen{Writer: &out, Color: true}, "A", "B")
	table.Row(Cell{Text: "x", Style: Good}, "y")
	require.NoError(t, table.Flush())
	require.Equal(t, "\x1b[1mA\x1b[0m  \x1b[1mB\x1b[0m\n\x1b[32mx\x1b[0m  y\n", out.String())
}

func TestTheLastColumnIsCutAtTheEndOfTheScreen(t *testing.T) {
	var out bytes.Buffer
	table := NewTable(Screen{Writer: &out, Terminal: true}, "ID", "TEXT").CutLast()
	table.Row("1", strings.Repeat("x", 200))
	require.NoError(t, table.Flush())
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, Width(strings.TrimSuffix(line, "\n")), usualWidth)
	}
	require.Contains(t, out.String(), "x…\n")
}

func TestAgesHaveTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 400 * time.Millisecond: "0.4s", 2 * time.Second: "2s", 12*time.Second + 900*time.Millisecond: "12s",
		3*time.Minute + 12*time.Second: "3m12s", 5*time.Hour + 7*time.Minute: "5h07m", 47 * time.Hour: "47h00m", 76 * time.Hour: "3d4h",
	} {
		require.Equal(t, want, Age(d))
	}
	for seconds, want := range map[float64]string{0: "0s", 0.0000012: "1µs", 0.0421: "42.1ms", 1.004321: "1.004s", 1.5: "1.5s", 330: "5m30s"} {
		require.Equal(t, want, Seconds(seconds))
	}
	require.Equal(t, "-1,234,567", Count(-1234567))
	require.Equal(t, "-123", Count(-123))
	require.Equal(t, "999", Count(999))
}

func TestProgressShowsTheRemainingTime(t *testing.T) {
	p := Progress{Noun: "job", Done: 5000, Refused: 3, Share: 0.25, Elapsed: 10 * time.Second}
	for columns, want := range map[int]string{
		79: "██████░░░░░░░░░░░░░░░░░░  25%  5,000 jobs  500/s  3 refused  30s left",
		59: "███░░░░░░░░░░░  25%  5,000 jobs  500/s  3 refused  30s left",
		49: "█░░░  25%  5,000 jobs  500/s  3 refused  30s left",
		48: " 25%  5,000 jobs  500/s  3 refused  30s left",
	} {
		require.Equal(t, want, p.Within(columns))
	}
	require.Equal(t, "20 jobs  10/s", Progress{Noun: "job", Done: 20, Share: -1, Elapsed: 2 * time.Second}.Within(79))
	require.Equal(t, "1 job  0/s", Progress{Noun: "job", Done: 1, Share: -1, Elapsed: 2 * time.Second}.Within(79))
	require.NotPanics(t, func() { _ = Progress{Share: 1.5}.Within(79) })
}

func TestALineIsRedrawnAndErased(t *testing.T) {
	var out bytes.Buffer
	line := NewLine(Screen{Writer: &out, Terminal: true})
	line.Set("one")
	line.Set("two, too soon to be drawn")
	line.Above("remark\n")
	line.Clear()
	line.Clear()
	require.Equal(t, "\r\x1b[Kone\r\x1b[Kremark\n\r\x1b[Ktwo, too soon to be drawn\r\x1b[K", out.String())

	out.Reset()
	line = NewLine(Screen{Writer: &out})
	line.Set("nobody looks")
	line.Above("remark\n")
	line.Clear()
	require.Equal(t, "remark\n", out.String())
}
