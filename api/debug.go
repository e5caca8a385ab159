package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// addOperations adds what operators look at.
func (s *service) addOperations(routes huma.API, prometheus http.Handler) {
	s.addWorkers(routes)
	s.addPlugins(routes)
	s.addDetail(routes)
	s.addLogs(routes)
	s.addQueues(routes)
	s.addDoctor(routes)
	s.addMetrics(routes, prometheus)
}
