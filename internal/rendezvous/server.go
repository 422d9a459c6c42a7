package rendezvous

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/musterhq/muster/internal/certificate"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// caller is the pod whose agent sent a request.
type caller struct{ Namespace, Name, UID string }

// identify returns the pod that a token belongs to, or errUnknown if it belongs to none.
type identify func(ctx context.Context, token string) (caller, error)

// coordinator coordinates the pods of one job.
type coordinator interface {
	// observe records a request of the pod's agent. It returns false if the pod is not known yet. Serials increase from
	// request to request.
	observe(agent caller, report protocol.Request, request uint64) (known bool)
	// answer returns what to answer the request now; false if there is nothing to answer yet.
	answer(ctx context.Context, agent caller, report protocol.Request, request uint64) (protocol.Response, bool, error)
	// disconnected records that the request was broken off.
	disconnected(agent caller, request uint64)
	// changed is closed when an answer may have changed.
	changed() <-chan struct{}
}

// server answers agents. It runs only in the operator that holds the leader lease.
type server struct {
	// bind is the address to listen on.
	bind string
	// authority provides the serving certificate.
	authority *certificate.Authority
	identify  identify
	// registry finds the coordinators of pods.
	registry *registry
	// reports takes what training code reports of its progress.
	reports *reports
	log     logr.Logger
	// leads reports whether no other operator can lead by now.
	leads func() bool
	// hold is how long a request is held; 0 means protocol.Hold. Tests set it.
	hold time.Duration

	// logged bounds how often errors are logged.
	logged rate.Sometimes
	synced []cache.InformerSynced
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: rounds are in the memory of one operator. Other
// replicas do not listen, so agents retry until they reach the leader.
func (s *server) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (s *server) Start(ctx context.Context) error {
	if !s.awaitSynced(ctx) {
		return nil
	}
	listener, err := net.Listen("tcp", s.bind)
	if err != nil {
		return fmt.Errorf("listening for agents: %w", err)
	}
	return s.serve(ctx, listener)
}

// serve answers agents until the context ends. Whoever reaches the port can open connections: what one of them can make
// the operator hold is bounded here.
func (s *server) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.paths(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		// Agents hold a request all the time, but for pauses of a few seconds.
		IdleTimeout:    15 * time.Second,
		MaxHeaderBytes: protocol.MaxHeaderBytes,
		BaseContext:    func(net.Listener) context.Context { return ctx },
		ConnContext:    withConnection,
		TLSConfig:      &tls.Config{GetCertificate: s.authority.GetCertificate, MinVersion: tls.VersionTLS13},
		HTTP2: &http.HTTP2Config{
			// Pings detect dead connections, so that no round begins with an agent that is gone.
			SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second, WriteByteTimeout: 10 * time.Second,
			// An agent sends one small request at a time, and perhaps another that replaces it. The buffers are the
			// smallest that are allowed.
			MaxConcurrentStreams: 4, MaxReadFrameSize: 16 << 10,
			MaxReceiveBufferPerConnection: 64 << 10, MaxReceiveBufferPerStream: protocol.MaxRequestBytes,
		},
	}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.ServeTLS(newConnections(listener, maxStrangers, s.registry.holds.most), "", ""); ctx.Err() == nil {
		return fmt.Errorf("serving agents: %w", err)
	}
	return nil
}

// paths returns the handler of all paths.
func (s *server) paths() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+protocol.Path, s.answer)
	mux.HandleFunc("POST "+protocol.ReportPath, s.report)
	mux.HandleFunc("/", noPath)
	return mux
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	response, err := s.respond(w, r)
	if err == nil && !s.leads() {
		err = errDeposed
	}
	// A connection is kept for the requests of an agent that follow. One that cannot be answered, or has no reason to
	// ask again, may open another.
	if err != nil || response.Refused != "" {
		w.Header().Set("Connection", "close")
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(response) // an agent that misses the answer asks again
}

// bearer returns the token of a request.
func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// respond returns the response to a request, which it holds until there is one.
func (s *server) respond(w http.ResponseWriter, r *http.Request) (protocol.Response, error) {
	agent, err := s.identify(r.Context(), bearer(r))
	if err != nil {
		return protocol.Response{}, err
	}
	var request protocol.Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, protocol.MaxRequestBytes)).Decode(&request); err != nil {
		return protocol.Response{}, fmt.Errorf("%w: %w", errInvalid, err)
	}
	return s.longPoll(r.Context(), agent, request)
}

// errInvalid is returned for requests that are not of the protocol.
var errInvalid = errors.New("reading the request")

// errDeposed is returned while another operator may lead. The other operator may serve agents of the same job, and both
// operators could let a round of the job begin.
var errDeposed = errors.New("another operator may lead by now")

// retrySeconds is when an agent may ask again that could not be answered. A few seconds let other agents pass.
const retrySeconds = 3

func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, errUnknown):
		http.Error(w, err.Error(), http.StatusUnauthorized)
	case errors.Is(err, errInvalid):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, errReplaced):
		http.Error(w, err.Error(), http.StatusConflict)
	case r.Context().Err() != nil:
	default:
		// If one agent cannot be answered, others cannot either, and all of them ask again.
		s.logged.Do(func() { s.log.Error(err, "answering an agent") })
		w.Header().Set("Retry-After", strconv.Itoa(retrySeconds))
		text := "the operator could not answer"
		if errors.Is(err, errBusy) || errors.Is(err, errFull) || errors.Is(err, errDeposed) {
			text = err.Error()
		}
		http.Error(w, text, http.StatusServiceUnavailable)
	}
}

// longPoll holds the request until there is something to answer.
func (s *server) longPoll(ctx context.Context, agent caller, request protocol.Request) (protocol.Response, error) {
	held, err := s.registry.holds.begin(types.UID(agent.UID))
	if err != nil {
		return protocol.Response{}, err
	}
	defer s.registry.holds.end(held)
	// An earlier connection of the pod is closed only now that its request is replaced, so that it does not count as
	// broken off.
	if err := identified(ctx, types.UID(agent.UID)); err != nil {
		return protocol.Response{}, err
	}
	timer := time.NewTimer(s.holdOf(request))
	defer timer.Stop()
	p := &poll{registry: s.registry, agent: agent, request: request, held: held}
	for {
		if response, done, err := p.answer(ctx); done || err != nil {
			return response, err
		}
		if done, err := p.wait(ctx, timer.C); done || err != nil {
			return protocol.Response{}, err
		}
	}
}

// poll is a held request on the way to its answer.
type poll struct {
	registry *registry
	agent    caller
	request  protocol.Request
	held     *hold
	// job is the coordinator of the pod's job as of the last answer, nil if it is not known, and changed what it closes
	// on a change. woken is closed when the pod, or the object that the request awaits, changes.
	job            coordinator
	changed, woken <-chan struct{}
	// observed is set once the coordinator has noted the request.
	observed bool
}

// answer looks for the answer to the request; done is false if there is none yet.
func (p *poll) answer(ctx context.Context) (response protocol.Response, done bool, err error) {
	if p.held.isReplaced() {
		return response, false, errReplaced // what changed is for the newer request
	}
	p.woken = p.held.changed()
	found, err := p.registry.locate(ctx, p.agent)
	switch {
	case err != nil:
		return response, false, err
	case found.refused != "":
		return refusal(p.request, found.refused), true, nil
	case found.awaits != "" && p.registry.holds.await(p.held, found.awaits):
		return p.answer(ctx) // the awaited object may have been observed meanwhile
	}
	if p.job, p.changed = found.coordinator, nil; p.job == nil {
		return response, false, nil // without a coordinator, nothing else can change
	}
	p.changed = p.job.changed()
	p.observed = p.observed || p.job.observe(p.agent, p.request, p.held.serial)
	return p.job.answer(ctx, p.agent, p.request, p.held.serial)
}

// wait returns when the answer may have changed, or done if the request is to be answered without news.
func (p *poll) wait(ctx context.Context, timeout <-chan time.Time) (done bool, err error) {
	select {
	case <-p.changed:
		return false, nil
	case <-p.woken:
		return false, nil
	case <-timeout:
		return true, nil
	case <-p.held.replaced:
		return false, errReplaced
	case <-ctx.Done():
		if p.job != nil && !p.held.isReplaced() { // if it is replaced, the agent is still there
			p.job.disconnected(p.agent, p.held.serial)
		}
		return false, ctx.Err()
	}
}

// holdOf returns how long to hold the request.
func (s *server) holdOf(request protocol.Request) time.Duration {
	switch {
	case request.State == protocol.Done:
		return 0 // there is nothing to wait for
	case s.hold != 0:
		return s.hold
	}
	return protocol.Hold
}

// refusal answers a pod that belongs to no job with agents. An agent with a running command heeds a refusal only once
// it has stopped it.
func refusal(request protocol.Request, why string) protocol.Response {
	if request.State == protocol.Running {
		return protocol.Response{Over: "the pod is not of this job: " + why}
	}
	return protocol.Response{Refused: why}
}
