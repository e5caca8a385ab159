package embedded

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheServersLinesHaveALevel(t *testing.T) {
	for _, c := range []struct{ line, level string }{
		{"LOG:  database system is ready to accept connections", "DEBUG"},
		{"WARNING:  there is no transaction in progress", "WARN"},
		{"ERROR:  could not extend file: No space left on device", "WARN"},
		{"FATAL:  sorry, too many clients already", "WARN"},
		{"FATAL:  terminating connection due to administrator command", "DEBUG"},
		{"FATAL:  the database system is starting up", "DEBUG"},
		{"PANIC:  could not write to file: No space left on device", "ERROR"},
		{"\tcontinued", "DEBUG"},
	} {
		t.Run(c.line, func(t *testing.T) {
			log := &logged{}
			(&serverLog{log: log.logger()}).follow(strings.NewReader(c.line + "\n"))
			require.Contains(t, log.text(), "level="+c.level)
		})
	}
}

func TestTheLastLinesAreKept(t *testing.T) {
	log := &serverLog{log: (&logged{}).logger()}
	require.Equal(t, "it wrote nothing", log.last())
	for n := range 100 {
		log.add(fmt.Sprintf("line %d", n))
	}
	last := strings.Split(log.last(), "\n")
	require.Len(t, last, keptLines)
	require.Equal(t, "line 99", last[keptLines-1])
}
