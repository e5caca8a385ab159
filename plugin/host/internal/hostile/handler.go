package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// go-plugin replaces os.Stdout and os.Stderr with its own pipes.
var realStdout, realStderr = os.Stdout, os.Stderr

// warmUp makes the first attempts of a process wait.
var warmUp sync.Once

// finished is the result of an attempt that ends its process.
const finished = `"finished"`

// order is the payload of an attempt.
type order struct {
	Do string `json:"do"`
	MS int    `json:"ms"`
	N  int    `json:"n"`
}

type handler struct {
	handlerv1.UnimplementedHandlerServer
}

func (*handler) Describe(context.Context, *handlerv1.DescribeRequest) (*handlerv1.DescribeResponse, error) {
	m := &handlerv1.DescribeResponse{Version: *version, Concurrency: uint32(*wish)}
	for _, name := range strings.Split(*types, ",") {
		m.JobTypes = append(m.JobTypes, &handlerv1.JobType{Name: name, Schema: []byte(*schema)})
	}
	m.JobTypes[0].Concurrency = uint32(*bound)
	switch *mode {
	case "badschema":
		m.JobTypes[0].Schema = []byte(`{"type":`)
	case "farschema":
		m.JobTypes[0].Schema = []byte(`{"properties":{"a":{"$ref":"https://example.com/a"}}}`)
	case "notypes":
		m.JobTypes = nil
	case "hung":
		time.Sleep(time.Hour)
	case "changing":
		m.Version = fmt.Sprint(os.Getpid())
	}
	return m, nil
}

// work is the one stream of the process.
type work struct {
	stream  handlerv1.Handler_WorkServer
	sending sync.Mutex
	mu      sync.Mutex
	cancels map[uint64]chan handlerv1.Cancel_Reason
	running sync.WaitGroup
	end     chan struct{}
	deaf    chan struct{}
}

func (*handler) Work(stream handlerv1.Handler_WorkServer) error {
	w := &work{
		stream: stream, cancels: make(map[uint64]chan handlerv1.Cancel_Reason),
		end: make(chan struct{}), deaf: make(chan struct{}),
	}
	if *mode == "deaf" {
		select {}
	}
	if *mode == "flood" {
		go flood()
	}
	requests := make(chan *handlerv1.WorkRequest)
	go func() {
		defer close(requests)
		for {
			request, err := stream.Recv()
			if err != nil {
				return
			}
			requests <- request
		}
	}()
	for {
		select {
		case <-w.end:
			return errors.New("stream closed on request")
		case <-w.deaf:
			select {}
		case request, ok := <-requests:
			if !ok {
				return nil
			}
			if w.take(request) {
				w.running.Wait()
				return nil
			}
		}
	}
}

func (w *work) take(request *handlerv1.WorkRequest) (drain bool) {
	for _, start := range request.GetStarts() {
		canceled := make(chan handlerv1.Cancel_Reason, 1)
		w.mu.Lock()
		w.cancels[start.GetHandle()] = canceled
		w.mu.Unlock()
		w.running.Go(func() { w.run(start, canceled) })
	}
	for _, cancel := range request.GetCancels() {
		w.mu.Lock()
		canceled := w.cancels[cancel.GetHandle()]
		w.mu.Unlock()
		if canceled == nil {
			_, _ = fmt.Fprintln(os.Stderr, "cancel for a handle that never started", cancel.GetHandle())
			os.Exit(77)
		}
		canceled <- cancel.GetReason()
	}
	return request.GetDrain() && *mode != "clingy"
}

func (w *work) run(start *handlerv1.Start, canceled chan handlerv1.Cancel_Reason) {
	var o order
	_ = json.Unmarshal(start.GetPayload(), &o)
	wait := time.Duration(o.MS) * time.Millisecond
	time.Sleep(*delay)
	warmUp.Do(func() { time.Sleep(*cold) })
	switch {
	case *crashing:
		os.Exit(3)
	case rand.Float64() < *failing:
		w.fail(start, &handlerv1.Failed{Code: "unlucky", Message: "failed by chance", Permanent: rand.IntN(2) == 0})
		return
	}
	switch o.Do {
	case "sleep":
		select {
		case <-time.After(wait):
			w.succeed(start, nil)
		case <-canceled:
			w.report(&handlerv1.Outcome{Handle: start.GetHandle(), Result: &handlerv1.Outcome_Canceled{Canceled: &handlerv1.Canceled{}}})
		}
	case "fail-when-canceled":
		<-canceled
		w.fail(start, &handlerv1.Failed{Code: "late", Message: "stopped in the middle"})
	case "succeed-when-canceled":
		<-canceled
		w.succeed(start, []byte(`"made it"`))
	case "ignore":
		select {}
	case "ignore-with-child":
		w.progress(start, spawn(false, true))
		select {}
	case "spawn":
		w.succeed(start, spawn(o.N >= 1, o.N != 1))
	case "cancel-itself":
		w.report(&handlerv1.Outcome{Handle: start.GetHandle(), Result: &handlerv1.Outcome_Canceled{Canceled: &handlerv1.Canceled{}}})
	case "fail":
		after := uint64(1500)
		w.fail(start, &handlerv1.Failed{Code: "c", Message: "m", Stack: "s", RetryAfterMs: &after})
	case "fail-permanently":
		w.fail(start, &handlerv1.Failed{Permanent: true, Code: "c"})
	case "snooze":
		w.report(&handlerv1.Outcome{Handle: start.GetHandle(), Result: &handlerv1.Outcome_Snoozed{Snoozed: &handlerv1.Snoozed{RetryAfterMs: 1 << 63}}})
	case "nothing":
		w.report(&handlerv1.Outcome{Handle: start.GetHandle()})
	case "bad-result":
		w.succeed(start, []byte("{"))
	case "twice":
		w.succeed(start, []byte("1"))
		w.succeed(start, []byte("2"))
		w.succeed(&handlerv1.Start{Handle: 1 << 60}, nil)
	case "tell":
		w.send(&handlerv1.WorkResponse{
			Logs:        []*handlerv1.Log{{Handle: start.GetHandle(), Level: handlerv1.Log_LEVEL_WARN, Message: "told", Attributes: []byte(`{"k":1}`)}},
			Progress:    []*handlerv1.Progress{{Handle: start.GetHandle(), Progress: []byte("50")}, {Handle: start.GetHandle(), Progress: []byte("{")}},
			Checkpoints: []*handlerv1.Checkpoint{{Handle: start.GetHandle(), Checkpoint: []byte(`{"at":7}`)}},
		})
		w.succeed(start, nil)
	case "exit":
		os.Exit(3)
	case "finish-and-exit":
		w.succeed(start, []byte(finished))
		<-resultSent
		os.Exit(3)
	case "panic":
		panic("boom")
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {}
	case "close-stream":
		close(w.end)
		select {}
	case "sicken":
		healthy.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		w.succeed(start, nil)
	case "deafen":
		close(w.deaf)
	case "print-without-end":
		_, _ = syscall.Write(1, []byte(strings.Repeat("z", 1<<20)))
		_, _ = os.Stdout.WriteString(strings.Repeat("z", 1<<20))
		w.succeed(start, nil)
	case "print-bad-json":
		_, _ = syscall.Write(2, []byte("{\"@message\": 42}\n"))
		w.succeed(start, nil)
	case "identity":
		w.succeed(start, fmt.Appendf(nil, `{"pid":%d,"leaseMs":%d}`, os.Getpid(), start.GetLeaseMs()))
	case "environment":
		result, _ := json.Marshal(os.Environ())
		w.succeed(start, result)
	case "limits":
		text, _ := os.ReadFile("/proc/self/limits")
		result, _ := json.Marshal(string(text))
		w.succeed(start, result)
	case "balloon":
		for size := 16 << 20; ; size *= 2 {
			block := make([]byte, size)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			runtime.KeepAlive(block)
		}
	case "balloon-of-children":
		for range 4 {
			shell(`(head -c 200000000 /dev/zero; sleep 1000) | tail -n 1`)
		}
		select {}
	case "fork-bomb":
		_, _ = realStderr.WriteString("about to fork\n")
		// If nothing contains it, it ends at two thousand processes.
		shell(`f() { [ $1 -gt 0 ] || exec sleep 1000; f $(($1-1)) & f $(($1-1)) & wait; }; f 10`)
		select {}
	case "spin":
		for range 2 * runtime.NumCPU() {
			go func() {
				for {
					runtime.Gosched()
				}
			}()
			shell("while :; do :; done")
		}
		w.progress(start, []byte("1"))
		select {}
	case "uid":
		w.succeed(start, fmt.Append(nil, os.Getuid()))
	case "flood", "flood-logs":
		w.succeed(start, fmt.Append(nil, w.floodStream(start, o, canceled)))
	case "big-progress":
		w.progress(start, bigValue(o.N))
		w.succeed(start, nil)
	case "big-checkpoint":
		w.send(&handlerv1.WorkResponse{Checkpoints: []*handlerv1.Checkpoint{{Handle: start.GetHandle(), Checkpoint: bigValue(o.N)}}})
		<-canceled
		w.report(&handlerv1.Outcome{Handle: start.GetHandle(), Result: &handlerv1.Outcome_Canceled{Canceled: &handlerv1.Canceled{}}})
	case "big-log":
		w.send(&handlerv1.WorkResponse{Logs: []*handlerv1.Log{{Handle: start.GetHandle(), Message: strings.Repeat("l", o.N)}}})
		w.succeed(start, nil)
	case "crowd":
		// Many small reports in one message.
		crowd := make([]*handlerv1.Progress, o.N)
		for i := range crowd {
			crowd[i] = &handlerv1.Progress{Handle: start.GetHandle(), Progress: []byte("1")}
		}
		w.send(&handlerv1.WorkResponse{Progress: crowd})
		w.succeed(start, nil)
	case "big":
		w.succeed(start, bigValue(o.N))
	case "submit": // o.N follow-ups of two bytes, in one outcome
		w.report(&handlerv1.Outcome{Handle: start.GetHandle(), Result: &handlerv1.Outcome_Succeeded{
			Succeeded: &handlerv1.Succeeded{FollowUps: slices.Repeat([][]byte{[]byte("{}")}, o.N)},
		}})
	case "measure":
		w.succeed(start, fmt.Append(nil, len(start.GetPayload())))
	default:
		w.succeed(start, start.GetPayload())
	}
}

// floodStream sends reports of N bytes, or as small as possible, until it is canceled or
// its time is over. It returns how many it sent.
func (w *work) floodStream(start *handlerv1.Start, o order, canceled chan handlerv1.Cancel_Reason) (sent int) {
	until := time.After(time.Duration(o.MS) * time.Millisecond)
	for ; ; sent++ {
		select {
		case <-until:
			return sent
		case <-canceled:
			return sent
		default:
		}
		value := fmt.Append(nil, sent)
		if o.N > 0 {
			value = bigValue(o.N)
		}
		if o.Do == "flood-logs" {
			w.send(&handlerv1.WorkResponse{Logs: []*handlerv1.Log{{Handle: start.GetHandle(), Message: string(value)}}})
			continue
		}
		w.progress(start, value)
	}
}

// bigValue is JSON of that many bytes.
func bigValue(n int) []byte { return []byte(`"` + strings.Repeat("b", n-2) + `"`) }

// spawn starts a child that keeps standard output and error open. With escape, the
// child gets its own session; with hide, it gets another environment. With both, only
// its cgroup or its ancestors identify it. spawn returns its process id as JSON.
func spawn(escape, hide bool) []byte {
	child := exec.CommandContext(context.Background(), "sleep", "1000")
	child.Stdout, child.Stderr = realStdout, realStderr
	if escape {
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if hide {
		child.Env = []string{"NOTHING=left"}
	}
	if err := child.Start(); err != nil {
		panic(err)
	}
	return fmt.Append(nil, child.Process.Pid)
}

// shell starts a script that dies with this process.
func shell(script string) {
	if err := exec.CommandContext(context.Background(), "sh", "-c", script).Start(); err != nil {
		panic(err)
	}
}

func flood() {
	block := []byte("{\"@message\": 42}\n" + strings.Repeat(strings.Repeat("f", 100)+"\n", 5000))
	for {
		if _, err := realStderr.Write(block); errors.Is(err, io.EOF) {
			return
		}
	}
}

func (w *work) succeed(start *handlerv1.Start, result []byte) {
	w.report(&handlerv1.Outcome{Handle: start.GetHandle(), Result: &handlerv1.Outcome_Succeeded{Succeeded: &handlerv1.Succeeded{Result: result}}})
}

func (w *work) fail(start *handlerv1.Start, failed *handlerv1.Failed) {
	w.report(&handlerv1.Outcome{Handle: start.GetHandle(), Result: &handlerv1.Outcome_Failed{Failed: failed}})
}

func (w *work) progress(start *handlerv1.Start, value []byte) {
	w.send(&handlerv1.WorkResponse{Progress: []*handlerv1.Progress{{Handle: start.GetHandle(), Progress: value}}})
}

func (w *work) report(outcome *handlerv1.Outcome) {
	w.send(&handlerv1.WorkResponse{Outcomes: []*handlerv1.Outcome{outcome}})
}

func (w *work) send(response *handlerv1.WorkResponse) {
	w.sending.Lock()
	defer w.sending.Unlock()
	_ = w.stream.Send(response)
}
