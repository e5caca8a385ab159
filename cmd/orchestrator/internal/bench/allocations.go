package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// allocated is what processes have taken from Go's heap since their start.
type allocated struct {
	Objects, Bytes float64
}

func (a allocated) since(before allocated) allocated {
	return allocated{a.Objects - before.Objects, a.Bytes - before.Bytes}
}

// allocatedBy asks an orchestrator. The figures are those of the request's arrival,
// although the answer takes until the backlog has been counted.
func allocatedBy(ctx context.Context, address string) (allocated, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return allocated{}, err
	}
	request.Header.Set("Accept", "text/plain")
	request.SetBasicAuth(operator, password)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return allocated{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return allocated{}, fmt.Errorf("its metrics: answered %s", answer.Status)
	}
	return readAllocated(answer.Body)
}

// readAllocated finds the figures of Go's runtime in Prometheus' text format.
func readAllocated(metrics io.Reader) (allocated, error) {
	var a allocated
	wanted := map[string]*float64{"go_memstats_mallocs_total": &a.Objects, "go_memstats_alloc_bytes_total": &a.Bytes}
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		to := wanted[name]
		if to == nil {
			continue
		}
		var err error
		if *to, err = strconv.ParseFloat(value, 64); err != nil {
			return a, fmt.Errorf("its metrics: %w", err)
		}
		delete(wanted, name)
	}
	if err := lines.Err(); err != nil {
		return a, fmt.Errorf("its metrics: %w", err)
	}
	if len(wanted) > 0 {
		return a, errors.New("its metrics have nothing on Go's heap")
	}
	return a, nil
}

// reportAllocated reports what this process has allocated to whoever connects to its
// socket in the directory, until the caller closes the socket.
func reportAllocated(directory string) (io.Closer, error) {
	at := filepath.Join(directory, strconv.Itoa(os.Getpid()))
	listener, err := net.Listen("unix", at) //nolint:noctx // listening does not wait
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			_ = json.NewEncoder(conn).Encode(allocated{float64(m.Mallocs), float64(m.TotalAlloc)})
			_ = conn.Close()
		}
	}()
	return listener, nil
}

// allocatedIn adds up the reports of all processes with a socket in the directory.
func allocatedIn(ctx context.Context, directory string) (sum allocated, err error) {
	sockets, err := os.ReadDir(directory)
	if err != nil {
		return sum, err
	}
	for _, socket := range sockets {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(directory, socket.Name()))
		if errors.Is(err, syscall.ECONNREFUSED) {
			continue // The process has not begun to listen, or has ended.
		}
		if err != nil {
			return sum, err
		}
		var one allocated
		err = json.NewDecoder(conn).Decode(&one)
		_ = conn.Close()
		if err != nil {
			return sum, err
		}
		sum.Objects += one.Objects
		sum.Bytes += one.Bytes
	}
	return sum, nil
}
