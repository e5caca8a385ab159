package plugin

import (
	"context"
	"errors"
	"sync"
	"time"
)

// drainWithin is how long the functions of OnDrain may take. The orchestrator
// waits a little longer for the process to leave.
const drainWithin = time.Second

// OnDrain is a part of Serve that is called once the process has done its last
// attempt and is to leave: the place to send what has gathered, or to close what
// all handlers share. The process leaves after a second, done or not; the context
// ends then. A process that is killed, or whose orchestrator is gone, does not
// call it. Several are called at the same time.
type OnDrain func(ctx context.Context)

func (f OnDrain) addTo(b *binary) error {
	if f == nil {
		return errors.New("the function of OnDrain is nil")
	}
	b.onDrain = append(b.onDrain, f)
	return nil
}

// leave calls what is to be called before the process leaves.
func (b *binary) leave() {
	if len(b.onDrain) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	var calls sync.WaitGroup
	for _, f := range b.onDrain {
		calls.Go(func() { f(ctx) })
	}
	done := make(chan struct{})
	go func() {
		calls.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
