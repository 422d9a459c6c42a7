package ask

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// operators answers requests in place of the operator.
type operators func(*http.Request) *http.Response

func (o operators) RoundTrip(r *http.Request) (*http.Response, error) { return o(r), nil }

func reply(code int, retryAfter, body string) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code),
		Header: http.Header{"Retry-After": {retryAfter}}, Body: io.NopCloser(strings.NewReader(body))}
}

// TestAgentAsksAgainWhenTheOperatorSaysSo: an operator that cannot answer all agents says when they may ask again, and
// they do not all ask at the same moment then.
func TestAgentAsksAgainWhenTheOperatorSaysSo(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		code        int
		retryAfter  string
		least, most time.Duration
	}{
		"unavailable":             {http.StatusServiceUnavailable, "5", 5 * time.Second, 10 * time.Second},
		"too many requests":       {http.StatusTooManyRequests, "5", 5 * time.Second, 10 * time.Second},
		"no time":                 {http.StatusServiceUnavailable, "", 0, lastPause},
		"not a number of seconds": {http.StatusServiceUnavailable, "soon", 0, lastPause},
		"in the past":             {http.StatusServiceUnavailable, "-5", 0, lastPause},
		"much too late":           {http.StatusServiceUnavailable, "86400", longestRetry, 2 * longestRetry},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := true
				o := &Operator{url: "https://operator", tokenFile: token,
					Logf: t.Logf, client: &http.Client{Transport: operators(func(*http.Request) *http.Response {
						if first {
							first = false
							return reply(tc.code, tc.retryAfter, "busy")
						}
						return reply(http.StatusOK, "", `{"over":"x"}`)
					})}}
				began := time.Now()
				if got, ok := o.Until(context.Background(), protocol.Request{}); !ok || got.Over != "x" {
					t.Errorf("answer = %+v, %t", got, ok)
				}
				if took := time.Since(began); took < tc.least || took > tc.most {
					t.Errorf("asked again after %s, want between %s and %s", took, tc.least, tc.most)
				}
			})
		})
	}
}
