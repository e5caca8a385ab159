package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// driver is a process that carries out one order.
type driver struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	errors  bytes.Buffer
	// warmed is how many jobs it took to warm up.
	warmed int
}

// runWithin limits an order, so that a stuck peer is reported.
const runWithin = 20 * time.Minute

// startDriver starts a driver and returns when it is ready.
func startDriver(ctx context.Context, command []string, o order) (*driver, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	d := &driver{process: exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], string(text))...)}
	d.process.Stderr, d.process.WaitDelay = &d.errors, 10*time.Second
	if d.in, err = d.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.out = bufio.NewReader(out)
	if err := d.process.Start(); err != nil {
		return nil, err
	}
	ready, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	d.warmed = ready.Done
	return d, nil
}

// read returns the next report.
func (d *driver) read(ctx context.Context) (r report, err error) {
	line, err := d.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		d.kill()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return r, fmt.Errorf("the driver: %w\n%s", err, d.errors.String())
	}
	return r, nil
}

// act starts the driver's work and returns what was done. The driver keeps running.
func (d *driver) act(ctx context.Context) (report, error) {
	if _, err := d.in.Write([]byte("go\n")); err != nil {
		return report{}, err
	}
	return d.read(ctx)
}

func (d *driver) end() error {
	_ = d.in.Close()
	if err := d.process.Wait(); err != nil {
		return fmt.Errorf("the driver: %w\n%s", err, d.errors.String())
	}
	return nil
}

// kill does nothing to a driver that has ended.
func (d *driver) kill() {
	_ = d.process.Process.Kill()
	_ = d.process.Wait()
}

// bounded limits the time of an order.
func bounded(ctx context.Context, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, runWithin, fmt.Errorf("%s took more than %s", what, runWithin))
}

// obey carries out an order that is not measured.
func obey(ctx context.Context, command []string, o order) error {
	ctx, cancel := bounded(ctx, o.Do)
	defer cancel()
	d, err := startDriver(ctx, command, o)
	if err != nil {
		return err
	}
	if _, err := d.act(ctx); err != nil {
		d.kill()
		return err
	}
	return d.end()
}
