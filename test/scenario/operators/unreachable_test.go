package operators

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/musterhq/muster/test/scenario/harness"
)

// TestOperatorWaitsForTheAPIServer: an operator that starts while the API server is away lives on, says what it waits
// for, and is not ready. Once the API server answers, it is.
func TestOperatorWaitsForTheAPIServer(t *testing.T) {
	w := newWorld(t)
	var back atomic.Bool
	var asked atomic.Int32
	w.through(func(rw http.ResponseWriter, _ *http.Request) bool {
		if back.Load() {
			return true
		}
		asked.Add(1)
		// as a load balancer does; client-go tries again by itself if a connection breaks
		rw.WriteHeader(http.StatusBadGateway)
		return false
	})
	running := w.operate()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, harness.Patience,
		true, func(context.Context) (bool, error) {
			if running.Readiness() == http.StatusOK {
				t.Fatal("it is ready, and has not reached the API server")
			}
			return asked.Load() > 3 && running.Alive(), nil
		})
	if err != nil {
		t.Fatalf("it lives and asks again (%d requests so far): %v", asked.Load(), err)
	}
	back.Store(true)
	running.AwaitReady(t)
	running.End(syscall.SIGTERM)
	if log := running.Log(); !strings.Contains(log, "cannot reach the API server") {
		t.Errorf("its log does not say what it waits for:\n%s", log)
	}
}
