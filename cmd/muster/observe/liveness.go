package observe

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

const (
	// checkInterval is the interval at which Watch checks that the API server answers. Watches alone do not show it: they
	// are restarted silently, and an unreachable cluster looks like one in which nothing changes.
	checkInterval = 5 * time.Second
	// checkTimeout is the timeout of the request of one check.
	checkTimeout = 10 * time.Second
)

// liveness periodically checks whether an API server answers.
type liveness struct {
	client *http.Client
	url    string
	every  time.Duration

	mu  sync.Mutex
	err error
}

func newLiveness(config *rest.Config) (*liveness, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the address of the API server: %w", err)
	}
	return &liveness{client: client, url: base.JoinPath("version").String(), every: checkInterval}, nil
}

// lost returns why the API server does not answer, or nil while it does.
func (l *liveness) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// follow sends a request every p.every until ctx ends, and calls changed when the server stops or resumes answering.
func (l *liveness) follow(ctx context.Context, changed func()) {
	ticker := time.NewTicker(l.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := l.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		l.mu.Lock()
		was := l.err
		l.err = err
		l.mu.Unlock()
		if (was == nil) != (err == nil) {
			changed()
		}
	}
}

// ask returns an error if the server does not answer. Any response counts as an answer except 401: with rejected
// credentials no events arrive any more once the open watches end.
func (l *liveness) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return err
	}
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return apierrors.NewUnauthorized("the API server asks for other credentials")
	}
	return nil
}
