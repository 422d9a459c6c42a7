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

// Claims of tokens bound to a pod, as keys of a TokenReview's user.extra.
const (
	podNameClaim = "authentication.kubernetes.io/pod-name"
	podUIDClaim  = "authentication.kubernetes.io/pod-uid"
)

// reviewTTL is how long the result of a TokenReview is cached. A review also checks that the pod still
// exists, but the operator observes that by itself.
const reviewTTL = 5 * time.Minute

// maxCachedReviews bounds the cache. When it is full it is cleared.
const maxCachedReviews = 100_000

// byTokenReview returns an identify that asks the API server by TokenReview, and caches its answers.
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

// podOf returns the pod named by a token review. The token's audience must be the rendezvous, so that a
// token meant for another service is not accepted here.
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
