package metrics

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// HandlerConfig says what a Handler shows.
type HandlerConfig struct {
	// Gatherer gives the metrics of /metrics. It is the registry that the Recorder was
	// made with. Without one /metrics is not served.
	Gatherer prometheus.Gatherer
	// Health answers /readyz. Without one the worker is always ready.
	Health *Health
}

// Handler serves
//
//	/metrics  the gatherer's metrics
//	/livez    200 as long as the process answers at all: restart it if this fails
//	/readyz   200 if every check passes, or else 503, with a line for each check,
//	          or as JSON with "Accept: application/json"
//
// to GET and HEAD. It asks for no credential, so serve it on loopback.
func Handler(cfg HandlerConfig) http.Handler {
	mux := http.NewServeMux()
	if cfg.Gatherer != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Gatherer, promhttp.HandlerOpts{
			ErrorHandling:       promhttp.ContinueOnError, // a collector that fails must not hide the others
			MaxRequestsInFlight: 4,
			Timeout:             9 * time.Second, // Prometheus waits for 10
		}))
	}
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", cfg.readyz)
	return mux
}

func (cfg HandlerConfig) readyz(w http.ResponseWriter, r *http.Request) {
	statuses, ok := []Status{}, true
	if cfg.Health != nil {
		statuses, ok = cfg.Health.Ready()
	}
	code := http.StatusOK
	if !ok {
		code = http.StatusServiceUnavailable
	}
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		body, err := json.Marshal(struct {
			Ready  bool     `json:"ready"`
			Checks []Status `json:"checks"`
		}{ok, statuses})
		if err != nil { // never happens: the values are plain strings
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		reply(w, code, "application/json", append(body, '\n'))
		return
	}
	reply(w, code, "text/plain; charset=utf-8", readyText(statuses, ok))
}

func readyText(statuses []Status, ok bool) []byte {
	var b strings.Builder
	for _, s := range statuses {
		if s.OK {
			fmt.Fprintf(&b, "ok      %s\n", s.Check)
		} else {
			fmt.Fprintf(&b, "failed  %s: %s\n", s.Check, s.Error)
		}
	}
	if ok {
		b.WriteString("ready\n")
	} else {
		b.WriteString("not ready\n")
	}
	return []byte(b.String())
}

func reply(w http.ResponseWriter, code int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(body) // fails only if the client has gone
}

// maxError is the longest error text of a check, in bytes.
const maxError = 500

// userinfo finds the credentials of a URL. Client libraries often quote the URL that
// they could not reach.
var userinfo = regexp.MustCompile(`://[^/\s@]+@`)

// printable makes one line of an error's text: it removes control characters and the
// credentials of URLs, and cuts the text at maxError bytes.
func printable(s string) string {
	s = userinfo.ReplaceAllString(s, "://***@")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > maxError {
		s = strings.ToValidUTF8(s[:maxError], "") + " …"
	}
	return s
}
