package rendezvous

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/utils/clock"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// Claims of tokens bound to a pod, as keys of a TokenReview's user.extra.
const (
	podNameClaim = "authentication.kubernetes.io/pod-name"
	podUIDClaim  = "authentication.kubernetes.io/pod-uid"
)

const (
	// reviewTTL is how long the result of a TokenReview is cached. A review also checks that the pod still
	// exists, but the operator observes that by itself.
	reviewTTL = 5 * time.Minute
	// refusalTTL is how long a refusal is cached. It is short, as an API server may not know a new pod yet.
	refusalTTL = 5 * time.Second
	// maxAccepted and maxRefused bound the caches, to about 20 MB and 2 MB. New tokens replace the least recently used
	// tokens, but refused tokens replace refused tokens only.
	maxAccepted, maxRefused = maxAgents, 10_000
	// maxReviews is how many reviews are requested at once. The API server takes some milliseconds for one,
	// so this suffices for thousands of agents that connect at once.
	maxReviews = 20
	// maxTurns is how many requests wait for a review at once. Each of them holds a token.
	maxTurns = 1000
	// turnTimeout is how long a request waits for its turn, and reviewTimeout how long for its review.
	turnTimeout   = 2 * time.Second
	reviewTimeout = 10 * time.Second
)

// errBusy is returned while too many tokens wait for their reviews.
var errBusy = errors.New("too many agents are being identified")

// reviewer identifies agents by TokenReviews of the API server, and caches its answers.
type reviewer struct {
	reviews           authentication.TokenReviewInterface
	clock             clock.PassiveClock
	accepted, refused *utilcache.LRUExpireCache
	turns, slots      *semaphore.Weighted
}

// byTokenReview returns an identify that asks the API server.
func byTokenReview(reviews authentication.TokenReviewInterface, clock clock.PassiveClock) identify {
	r := &reviewer{
		reviews: reviews, clock: clock,
		accepted: utilcache.NewLRUExpireCacheWithClock(maxAccepted, clock),
		refused:  utilcache.NewLRUExpireCacheWithClock(maxRefused, clock),
		turns:    semaphore.NewWeighted(maxTurns), slots: semaphore.NewWeighted(maxReviews),
	}
	return r.identify
}

func (r *reviewer) identify(ctx context.Context, token string) (caller, error) {
	if err := checkClaims(token, r.clock.Now()); err != nil {
		return caller{}, err
	}
	key := sha256.Sum256([]byte(token))
	if agent, ok := r.accepted.Get(key); ok {
		return agent.(caller), nil
	}
	if _, ok := r.refused.Get(key); ok {
		return caller{}, errUnknown
	}
	status, err := r.review(ctx, token)
	if err != nil {
		return caller{}, err
	}
	agent, err := podOf(status)
	if err != nil {
		r.refused.Add(key, nil, refusalTTL)
		return caller{}, err
	}
	r.accepted.Add(key, agent, reviewTTL)
	return agent, nil
}

// review has the API server review the token, once it is its turn. Anyone who reaches the operator can send tokens that
// only the API server can refuse.
func (r *reviewer) review(ctx context.Context, token string) (*authenticationv1.TokenReviewStatus, error) {
	if !r.turns.TryAcquire(1) {
		return nil, errBusy
	}
	defer r.turns.Release(1)
	turn, cancel := context.WithTimeoutCause(ctx, turnTimeout, errBusy)
	defer cancel()
	if err := r.slots.Acquire(turn, 1); err != nil {
		return nil, context.Cause(turn)
	}
	defer r.slots.Release(1)
	ctx, cancel = context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	result, err := r.reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{protocol.Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("having a token reviewed: %w", err)
	}
	return &result.Status, nil
}

// podOf returns the pod named by a token review. The token's audience must be the rendezvous, so that a token meant for
// another service is not accepted here.
func podOf(status *authenticationv1.TokenReviewStatus) (caller, error) {
	forUs := false
	for _, audience := range status.Audiences {
		forUs = forUs || audience == protocol.Audience
	}
	parts := strings.Split(status.User.Username, ":") // system:serviceaccount:<namespace>:<name>
	name, uid := status.User.Extra[podNameClaim], status.User.Extra[podUIDClaim]
	if !status.Authenticated || !forUs || len(parts) != 4 || parts[1] != "serviceaccount" ||
		len(name) != 1 || len(uid) != 1 {
		return caller{}, errUnknown
	}
	return caller{Namespace: parts[2], Name: name[0], UID: uid[0]}, nil
}
