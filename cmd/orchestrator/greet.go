package main

import (
	"fmt"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"log/slog"
	"net"
	"strings"
)

// greet says where the API is: to a person on a terminal, else to the log.
func (p *program) greet(address net.Addr, cfg *config.Security, log *slog.Logger) {
	url := "http://" + reachable(address)
	if !isTerminal(p.stdout) {
		log.Info("listening", "address", address.String(), "url", url)
		return
	}
	_, _ = fmt.Fprintf(p.stdout, `Holdfast listens on %s. Try:
  curl%s %s/jobs -H 'Content-Type: application/json' -d '{"jobType":"SLEEP_JOB","payload":{"sleepSeconds":1}}'
`, url, curlLogin(cfg, isPublic(address)), url)
}

// curlLogin is what makes curl show credentials, where a submission needs
// them. It does not tell them: curl asks for the password.
func curlLogin(cfg *config.Security, public bool) string {
	switch {
	case !cfg.Closed(public):
		return ""
	case cfg.Password == "" && public:
		return ` -H "Authorization: Bearer $TOKEN"`
	}
	return " -u " + cfg.User
}

// reachable is the address as a client on this machine can use it.
func reachable(address net.Addr) string {
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}
	if ip := net.ParseIP(strings.Split(host, "%")[0]); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
