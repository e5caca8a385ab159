package conformance

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A database server that was there before may start a process for a connection, or to
// vacuum, while a plugin is checked. Not parallel: other tests start processes, too.
func TestChildrenOfOtherProcessesAreNotThePlugins(t *testing.T) {
	server := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", "read request; sleep 1000 & echo $!; read request; kill $!")
	answers, err := server.StdoutPipe()
	require.NoError(t, err)
	orders := startUntilTheEnd(t, server)

	p := &process{others: descendants()}
	require.Contains(t, p.others, server.Process.Pid)
	_, err = io.WriteString(orders, "connect\n")
	require.NoError(t, err)
	answer, err := bufio.NewReader(answers).ReadString('\n')
	require.NoError(t, err)
	connection, err := strconv.Atoi(strings.TrimSpace(answer))
	require.NoError(t, err)
	require.Contains(t, descendants(), connection)
	plugin := exec.CommandContext(context.WithoutCancel(t.Context()), "cat")
	startUntilTheEnd(t, plugin)

	require.Equal(t, []int{plugin.Process.Pid}, p.alive())
}

// startUntilTheEnd starts a command that ends when its input does, which is at the end of the
// test.
func startUntilTheEnd(t *testing.T, cmd *exec.Cmd) (stdin io.Writer) {
	t.Helper()
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, input.Close())
		require.NoError(t, cmd.Wait())
	})
	return input
}
