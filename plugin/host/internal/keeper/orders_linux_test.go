package keeper

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// If sendingVariable is set, the test's program sends the orders.
const sendingVariable = "HOLDFAST_TEST_SENDS_ORDERS"

// If an order is lost, a process outlives its lease or is never collected.
func TestOrdersArriveFromAnOrchestratorThatIsStoppedAgainAndAgain(t *testing.T) {
	if os.Getenv(sendingVariable) != "" {
		sendOrders(t)
		return
	}
	ours, theirs, err := openLine()
	require.NoError(t, err)
	sender := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	sender.Env = append(os.Environ(), sendingVariable+"=1", "GOMAXPROCS=4")
	sender.ExtraFiles = []*os.File{ours}
	lifeline, err := sender.StdinPipe()
	require.NoError(t, err)
	sent, err := sender.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, sender.Start())
	require.NoError(t, ours.Close())

	arrived := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(io.Discard, theirs)
		arrived <- n
	}()
	stops := time.NewTicker(15 * time.Millisecond)
	defer stops.Stop()
	for range 120 {
		require.NoError(t, unix.Kill(sender.Process.Pid, unix.SIGSTOP))
		<-stops.C
		require.NoError(t, unix.Kill(sender.Process.Pid, unix.SIGCONT))
		<-time.After(time.Millisecond)
	}
	require.NoError(t, lifeline.Close())
	var orders int64
	_, err = fmt.Fscanf(sent, "%d", &orders)
	require.NoError(t, err)
	require.NoError(t, sender.Wait())
	require.Equal(t, orders*orderBytes, <-arrived)
}

// sendOrders sends orders until its standard input ends, never more than there is room
// for, and prints how many it sent.
func sendOrders(t *testing.T) {
	enough := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(enough)
	}()
	k := &Keeper{line: os.NewFile(3, "line")}
	for sent := int64(0); ; {
		select {
		case <-enough:
			fmt.Println(sent)
			os.Exit(0)
		default:
		}
		for range 64 {
			k.KillAt(time.Now().Add(time.Hour))
			sent++
		}
		require.Eventually(t, func() bool {
			unread, err := unix.IoctlGetInt(3, unix.TIOCOUTQ)
			return err == nil && unread == 0
		}, time.Minute, 20*time.Microsecond)
	}
}
