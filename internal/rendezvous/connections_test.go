package rendezvous

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
	"github.com/musterhq/muster/internal/rendezvous/round"
)

// client returns a client of the operator that sends its requests over one connection.
func (o *operator) client() *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(o.authority.Trusted()))
	transport := &http.Transport{ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: protocol.ServerName}}
	o.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Timeout: testTimeout, Transport: transport}
}

// ask sends a request with the token, and returns the status of the reply and its text.
func (o *operator) ask(client *http.Client, token, text string) (*http.Response, string, error) {
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, "https://"+o.address+protocol.Path,
		strings.NewReader(text))
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	reply, err := client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer reply.Body.Close()
	answer, err := io.ReadAll(reply.Body)
	return reply, string(bytes.TrimSpace(answer)), err
}

const waits = `{"state":"Waiting","join":"A","address":"10.0.0.1","port":29500}`

// TestLongHeadersAreRefused: a header is read before anything is known of who sent it.
func TestLongHeadersAreRefused(t *testing.T) {
	o := newOperator(t, "1:1")
	o.pod(0)
	reply, _, err := o.ask(o.client(), "token-of-job-worker-0"+strings.Repeat("x", 2*protocol.MaxHeaderBytes), waits)
	if err == nil && reply.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("response to a long token = %s, want %d or a broken connection", reply.Status,
			http.StatusRequestHeaderFieldsTooLarge)
	}
	if reply, text, err := o.ask(o.client(), "token-of-job-worker-0", waits); err != nil ||
		reply.StatusCode != http.StatusOK {
		t.Errorf("response to a token = %v %s, %v", reply, text, err)
	}
}

// TestNewerRequestReplacesTheConnection: of the requests and connections of one pod, one of each is kept.
func TestNewerRequestReplacesTheConnection(t *testing.T) {
	o := newOperator(t, "2:2")
	o.pod(0)
	answers := make(chan string)
	asks := func(token, join string) {
		reply, text, err := o.ask(o.client(), token, strings.Replace(waits, "A", join, 1))
		if err != nil {
			answers <- "broken off"
			return
		}
		answers <- fmt.Sprint(reply.StatusCode, " ", text)
	}
	go asks("token-of-job-worker-0", "A")
	first := o.awaitRequestAfter("uid-job-worker-0", 0)
	go asks("token-of-job-worker-0", "B")
	if got := <-answers; got != "broken off" && !strings.HasPrefix(got, "409 ") {
		t.Errorf("the earlier request was answered %s, want 409 or a closed connection", got)
	}
	o.awaitRequestAfter("uid-job-worker-0", first) // or the round begins with the earlier one
	o.pod(1)
	go asks("token-of-job-worker-1", "C")
	for range 2 {
		if got := <-answers; !strings.Contains(got, `"size":2`) {
			t.Errorf("answer = %s, want a round with the newer request", got)
		}
	}
}

// TestReplacedRequestIsNotObservedAgain: the handler of a request may be slower than that of the one that replaces it.
func TestReplacedRequestIsNotObservedAgain(t *testing.T) {
	c := newRoundCoordinator("id", 1, 1, round.Timeouts{Gather: time.Second, Presence: time.Minute})
	defer c.close()
	agent := caller{UID: "a"}
	waiting := protocol.Request{State: protocol.Waiting, Join: "A", Address: "10.0.0.1", Port: 29500}
	done := protocol.Request{State: protocol.Done}
	c.updatePod(round.Pod{UID: "a", Name: "a"}, false, false)
	if !c.observe(agent, done, 2) || !c.observe(agent, waiting, 1) {
		t.Error("the pod is not known")
	}
	if response, says, err := c.answer(t.Context(), agent, done, 2); !says || err != nil || response.Round != nil {
		t.Errorf("answer to an agent that is done = %+v, %v, %v: the request that it replaced counts", response, says, err)
	}
}

// TestConnectionsAreBounded: strangers do not take the place of agents, and each pod has one connection.
func TestConnectionsAreBounded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounded := newConnections(listener, 1, 2)
	defer bounded.Close()
	accepted := make(chan *connection)
	go func() {
		for {
			c, err := bounded.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c.(*connection)
		}
	}()
	dial := func() {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
	}
	isOpen := func(c *connection) bool {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := c.Read(make([]byte, 1))
		return !errors.Is(err, net.ErrClosed)
	}
	wantFull := func(strangers, agents int) {
		t.Helper()
		if got := len(bounded.strangers); got > strangers || len(bounded.agents) != agents {
			t.Errorf("%d strangers and %d agents, want at most %d and %d", got, len(bounded.agents), strangers, agents)
		}
	}
	dial()
	first := <-accepted
	dial()
	select {
	case <-accepted:
		t.Error("a second stranger was accepted")
	case <-time.After(20 * time.Millisecond):
	}
	if err := first.identified("a"); err != nil {
		t.Fatal(err)
	}
	second := <-accepted
	if err := errors.Join(first.identified("a"), second.identified("b")); err != nil {
		t.Fatal(err)
	}
	dial()
	third := <-accepted
	if err := third.identified("c"); !errors.Is(err, errFull) {
		t.Errorf("a third agent: error %v, want errFull", err)
	}
	if err := first.identified("c"); !errors.Is(err, errOtherPod) {
		t.Errorf("another pod on the first connection: error %v, want errOtherPod", err)
	}
	if err := third.identified("a"); err != nil || isOpen(first) || !isOpen(second) || !isOpen(third) {
		t.Errorf("another connection of the first pod: error %v; open: first %t, second %t, third %t", err, isOpen(first),
			isOpen(second), isOpen(third))
	}
	wantFull(1, 2)
	for _, c := range []*connection{first, second, third, third} {
		c.Close()
	}
	wantFull(1, 0)
	bounded.Close()
	for range accepted {
		t.Error("a connection was accepted after the listener was closed")
	}
}

// TestAgentThatCannotBeAnsweredIsToldWhenToAskAgain: agents ask again in any case, but not all at once.
func TestAgentThatCannotBeAnsweredIsToldWhenToAskAgain(t *testing.T) {
	for _, why := range []error{errBusy, errFull, errors.New("the API server does not answer")} {
		s := &server{log: logr.Discard(), identify: func(context.Context, string) (caller, error) { return caller{}, why }}
		reply := httptest.NewRecorder()
		s.answer(reply, httptest.NewRequest(http.MethodPost, protocol.Path, strings.NewReader(waits)))
		if reply.Code != http.StatusServiceUnavailable || reply.Header().Get("Retry-After") != "3" ||
			reply.Header().Get("Connection") != "close" {
			t.Errorf("response to %q = %d with header %v, want 503 with Retry-After", why, reply.Code, reply.Header())
		}
	}
}

// TestAgentsFitIntoHalfOfTheMemory: beyond, the operator would be killed, and with it all other agents would lose it.
func TestAgentsFitIntoHalfOfTheMemory(t *testing.T) {
	for bytes, want := range map[int64]int{0: maxAgents, 64 << 20: minAgents, 512 << 20: 5041, 1 << 30: 10_082,
		64 << 30: maxAgents} {
		if got := agentsWithin(bytes); got != want {
			t.Errorf("agentsWithin(%d) = %d, want %d", bytes, got, want)
		}
	}
}
