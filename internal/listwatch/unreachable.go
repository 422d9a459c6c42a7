package listwatch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// longestPause bounds the time between two attempts to reach the API server, and so the time after its return in which
// an operator decides without what has changed. client-go's reflectors pause for up to a minute, as is right for
// thousands of nodes; an operator has some thirty of them.
const longestPause = 5 * time.Second

// pauses returns the pauses between attempts.
func pauses() wait.Backoff {
	return wait.Backoff{Duration: longestPause / 8, Factor: 2, Steps: 3, Jitter: 0.2}
}

// AwaitReached returns once the API server can be reached, whatever it answers. It fails if the certificate that is
// shown is not trusted, which waiting does not mend, and when ctx ends.
func AwaitReached(ctx context.Context, cluster *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(cluster)
	if err != nil {
		return fmt.Errorf("making a client for discovery: %w", err)
	}
	_, err = reach(ctx, "version",
		func() ([]byte, error) { return client.RESTClient().Get().AbsPath("/version").DoRaw(ctx) })
	var untrusted *tls.CertificateVerificationError
	if isUnreachable(err) || errors.As(err, &untrusted) {
		return fmt.Errorf("reaching the API server: %w", err)
	}
	return nil
}

// untilReached returns a lister and watcher that asks again and again while the API server cannot be reached. Other
// errors, an answer of the API server among them, are the caller's.
func untilReached(lw toolscache.ListerWatcher, kind string) toolscache.ListerWatcher {
	lister, watcher := toolscache.ToListerWithContext(lw), toolscache.ToWatcherWithContext(lw)
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return reach(ctx, kind, func() (runtime.Object, error) { return lister.ListWithContext(ctx, options) })
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return reach(ctx, kind, func() (watch.Interface, error) { return watcher.WatchWithContext(ctx, options) })
		},
	}
}

// reach asks until the API server can be reached, or ctx ends.
func reach[T any](ctx context.Context, kind string, ask func() (T, error)) (T, error) {
	next := pauses()
	for attempt := 0; ; attempt++ {
		out, err := ask()
		if !isUnreachable(err) {
			return out, err
		}
		if attempt == 0 {
			log.Log.Info("cannot reach the API server, trying again until it answers", "reading", kind, "why", err.Error())
		}
		select {
		case <-ctx.Done():
			return out, err
		case <-time.After(next.Step()):
		}
	}
}

// isUnreachable reports whether the error is not an answer of the API server, but may be followed by one: there was no
// connection, or a proxy in front of the API server answered.
func isUnreachable(err error) bool {
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return false
	}
	var transport *url.Error
	if errors.As(err, &transport) {
		return true
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Status().Code {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
