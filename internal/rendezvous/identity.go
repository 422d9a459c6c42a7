package rendezvous

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// Claims of tokens that are bound to a pod, as reviews give them.
const (
	podNameClaim = "authentication.kubernetes.io/pod-name"
	podUIDClaim  = "authentication.kubernetes.io/pod-uid"
)

// reviewed is for how long the API server's word on a token is taken: it also asks
// whether the pod is still there, which the operator sees for itself.
const reviewTTL = 5 * time.Minute

// maxReviews bounds what is remembered. Beyond it the API server is asked again.
const maxCachedReviews = 100_000

// byTokenReview has the API server say whose token it is.
func byTokenReview(reviews authentication.TokenReviewInterface) identify {
	known := &reviewCache{entries: map[[sha256.Size]byte]review{}}
	return func(ctx context.Context, token string) (caller, error) {
		if token == "" {
			return caller{}, errUnknown
		}
		key := sha256.Sum256([]byte(token))
		if agent, ok := known.get(key, time.Now()); ok {
			return agent, nil
		}
		result, err := reviews.Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{protocol.Audience}},
		}, metav1.CreateOptions{})
		if err != nil {
			return caller{}, fmt.Errorf("having a token reviewed: %w", err)
		}
		agent, err := podOf(&result.Status)
		if err == nil {
			known.put(key, agent, time.Now())
		}
		return agent, err
	}
}

// podOf reads a review. The token must be for the rendezvous: one that a program sends to
// somebody else must not open this door too.
func podOf(status *authenticationv1.TokenReviewStatus) (caller, error) {
	forUs := false
	for _, audience := range status.Audiences {
		forUs = forUs || audience == protocol.Audience
	}
	parts := strings.Split(status.User.Username, ":") // system:serviceaccount:<namespace>:<name>
	name, uid := status.User.Extra[podNameClaim], status.User.Extra[podUIDClaim]
	if !status.Authenticated || !forUs || len(parts) != 4 || parts[1] != "serviceaccount" || len(name) != 1 || len(uid) != 1 {
		return caller{}, errUnknown
	}
	return caller{Namespace: parts[2], Name: name[0], UID: uid[0]}, nil
}

type review struct {
	agent   caller
	expires time.Time
}

type reviewCache struct {
	mu      sync.Mutex
	entries map[[sha256.Size]byte]review
}

func (c *reviewCache) get(key [sha256.Size]byte, now time.Time) (caller, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.entries[key]
	if ok && now.After(r.expires) {
		delete(c.entries, key)
		return caller{}, false
	}
	return r.agent, ok
}

func (c *reviewCache) put(key [sha256.Size]byte, agent caller, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxCachedReviews {
		clear(c.entries)
	}
	c.entries[key] = review{agent, now.Add(reviewTTL)}
}
