// Package ask is the agent's client of the operator's rendezvous: one request at a time, repeated until there is an
// answer, whatever happens to the connection or the operator.
package ask

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// Operator is a client of the operator.
type Operator struct {
	url       string
	tokenFile string
	client    *http.Client
	// Logf logs that the operator cannot be reached, and that it can be again.
	Logf func(format string, args ...any)
}

// New returns a client of the operator at address, whose certificate must be signed by the CA whose certificate is
// given as PEM. The token is read from its file for each request, since the kubelet rotates it.
func New(address, authority, tokenFile string, logf func(string, ...any)) (*Operator, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(authority)) {
		return nil, errors.New("the certificate of the operator's authority is not a valid PEM certificate")
	}
	return &Operator{
		url: "https://" + address + protocol.Path, tokenFile: tokenFile, Logf: logf,
		client: &http.Client{
			Timeout: protocol.Hold + 15*time.Second,
			Transport: &http.Transport{
				TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13, ServerName: protocol.ServerName},
				TLSHandshakeTimeout: 10 * time.Second,
				ForceAttemptHTTP2:   true,
				// Pings detect a connection that is broken.
				HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
			},
		},
	}, nil
}

// Pauses between attempts: a restarted operator is asked by many agents at once.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 2 * time.Second
	// soon is the threshold before which an empty answer means that the operator did not hold the request, although the
	// protocol says so: it is of another version, whose answer this agent does not understand.
	soon = time.Second
	// longestRetry bounds the pause that an operator may ask for.
	longestRetry = time.Minute
)

// laterError is an answer of an operator that says when to ask again.
type laterError struct {
	error
	after time.Duration
}

// retryAfter returns the pause that the reply asks for; 0 if it asks for none.
func retryAfter(reply *http.Response) time.Duration {
	if reply.StatusCode != http.StatusServiceUnavailable && reply.StatusCode != http.StatusTooManyRequests {
		return 0
	}
	seconds, err := strconv.Atoi(reply.Header.Get("Retry-After"))
	if err != nil {
		return 0
	}
	return min(max(0, time.Duration(seconds)*time.Second), longestRetry)
}

// Until repeats the request until the operator has an answer, or returns false if the context ends first.
func (o *Operator) Until(ctx context.Context, request protocol.Request) (protocol.Response, bool) {
	pause, failing := firstPause, false
	for ctx.Err() == nil {
		asked := time.Now()
		response, err := o.Once(ctx, request)
		switch {
		case ctx.Err() != nil:
			continue
		case err != nil:
			if pause >= lastPause/4 && !failing {
				failing = true
				o.Logf("the operator cannot be asked, and is asked again: %v", err)
			}
		case response != protocol.Response{}:
			return response, true
		case time.Since(asked) >= soon:
			pause, failing = firstPause, false
			continue
		}
		wait := pause/2 + rand.N(pause)
		if later, is := errors.AsType[laterError](err); is && later.after > 0 {
			wait = later.after + rand.N(later.after) // the operator says so to many agents at once
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		pause = min(2*pause, lastPause)
	}
	return protocol.Response{}, false
}

// Once sends the request once.
func (o *Operator) Once(ctx context.Context, request protocol.Request) (protocol.Response, error) {
	token, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return protocol.Response{}, fmt.Errorf("reading the pod's token: %w", err)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return protocol.Response{}, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, bytes.NewReader(body))
	if err != nil {
		return protocol.Response{}, err
	}
	post.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	post.Header.Set("Content-Type", "application/json")
	reply, err := o.client.Do(post)
	if err != nil {
		return protocol.Response{}, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, protocol.MaxRequestBytes))
	if err != nil {
		return protocol.Response{}, err
	}
	if reply.StatusCode != http.StatusOK {
		return protocol.Response{}, laterError{fmt.Errorf("%s: %s", reply.Status, strings.TrimSpace(string(text))),
			retryAfter(reply)}
	}
	var response protocol.Response
	if err := json.Unmarshal(text, &response); err != nil {
		return protocol.Response{}, fmt.Errorf("reading the operator's answer: %w", err)
	}
	return response, nil
}
