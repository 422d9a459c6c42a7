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
	// askEvery is how often the API server of a watch is asked whether it is there: watches that hear nothing do not tell a cluster where
	// nothing happens from one that is gone, and are begun anew without a word.
	askEvery = 5 * time.Second
	// askPatience is for how long it may think about that.
	askPatience = 10 * time.Second
)

// pulse is whether an API server answers.
type pulse struct {
	client *http.Client
	url    string
	every  time.Duration

	mu  sync.Mutex
	err error
}

func newPulse(config *rest.Config) (*pulse, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the address of the API server: %w", err)
	}
	return &pulse{client: client, url: base.JoinPath("version").String(), every: askEvery}, nil
}

// lost is why the API server does not answer, nil while it does.
func (p *pulse) lost() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// follow asks until ctx ends, and tells of each change.
func (p *pulse) follow(ctx context.Context, changed func()) {
	ticker := time.NewTicker(p.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := p.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		was := p.err
		p.err = err
		p.mu.Unlock()
		if (was == nil) != (err == nil) {
			changed()
		}
	}
}

// ask fails if there is no answer. One that refuses is one, unless it asks who this is: then it tells nothing any more, as soon as the
// watches that are open end.
func (p *pulse) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return apierrors.NewUnauthorized("the API server asks for other credentials")
	}
	return nil
}
