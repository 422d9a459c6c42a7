package rendezvous

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

func goodReview() authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{protocol.Audience},
		User: authenticationv1.UserInfo{Username: "system:serviceaccount:ns:default",
			Extra: map[string]authenticationv1.ExtraValue{
				podNameClaim: {"p"}, podUIDClaim: {"u"},
			}},
	}
}

func TestTokenIdentifiesOnlyItsPod(t *testing.T) {
	for name, spoil := range map[string]func(*authenticationv1.TokenReviewStatus){
		"not authenticated": func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false },
		"for another audience": func(s *authenticationv1.TokenReviewStatus) {
			s.Audiences = []string{"https://kubernetes.default.svc"}
		},
		"without an audience": func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil },
		"of a user":           func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "alice" },
		"of no pod":           func(s *authenticationv1.TokenReviewStatus) { s.User.Extra = nil },
	} {
		status := goodReview()
		if agent, err := podOf(&status); err != nil || agent != (caller{"ns", "p", "u"}) {
			t.Fatalf("a valid token: got %+v, %v", agent, err)
		}
		spoil(&status)
		if agent, err := podOf(&status); !errors.Is(err, errUnknown) {
			t.Errorf("a token %s: got %+v, %v, want errUnknown", name, agent, err)
		}
	}
}

// tokenOf returns a token as the API server makes them for the rendezvous, spoilt if spoil is not nil. The name tells
// it apart from others.
func tokenOf(t *testing.T, name string, spoil func(map[string]any)) string {
	t.Helper()
	said := map[string]any{
		"aud": []string{protocol.Audience}, "exp": time.Now().Add(time.Hour).Unix(), "jti": name,
		"kubernetes.io": map[string]any{"namespace": "ns", "pod": map[string]any{"name": "p", "uid": "u"}},
	}
	if spoil != nil {
		spoil(said)
	}
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode(text) + "." + encode([]byte("signature"))
}

// reviews is an API server's review of a token.
type reviews func(context.Context, *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error)

func (r reviews) Create(ctx context.Context, review *authenticationv1.TokenReview,
	_ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	return r(ctx, review)
}

func TestTokenReviewIsCached(t *testing.T) {
	good, bad := tokenOf(t, "good", nil), tokenOf(t, "bad", nil)
	clock, reviewed := testclock.NewFakeClock(time.Now()), 0
	identify := byTokenReview(reviews(func(_ context.Context,
		review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
		reviewed++
		if len(review.Spec.Audiences) != 1 || review.Spec.Audiences[0] != protocol.Audience {
			t.Errorf("reviewed audiences = %q", review.Spec.Audiences)
		}
		if review.Spec.Token == good {
			review.Status = goodReview()
		}
		return review, nil
	}), clock)
	for _, step := range []struct {
		token    string
		later    time.Duration
		want     error
		reviewed int
	}{
		{good, 0, nil, 1}, {good, refusalTTL + time.Second, nil, 1},
		{bad, 0, errUnknown, 2}, {bad, 0, errUnknown, 2}, {bad, refusalTTL + time.Second, errUnknown, 3},
		{good, reviewTTL, nil, 4}, {good, 2 * time.Hour, errUnknown, 4},
	} {
		clock.Step(step.later)
		if _, err := identify(t.Context(), step.token); !errors.Is(err, step.want) || reviewed != step.reviewed {
			t.Errorf("%+v: error %v after %d reviews", step, err, reviewed)
		}
	}
}

// TestTokenThatCannotBeAPodsIsNotReviewed: anyone who reaches the operator can send such tokens.
func TestTokenThatCannotBeAPodsIsNotReviewed(t *testing.T) {
	reviewed := 0
	identify := byTokenReview(reviews(func(_ context.Context,
		review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
		reviewed++
		review.Status = goodReview()
		return review, nil
	}), clock.RealClock{})
	set := func(key string, value any) func(map[string]any) {
		return func(said map[string]any) { said[key] = value }
	}
	for name, token := range map[string]string{
		"none":                     "",
		"of another form":          "secret",
		"with invalid base64":      "a.!.c",
		"with invalid JSON":        "a." + base64.RawURLEncoding.EncodeToString([]byte("[")) + ".c",
		"for the API server":       tokenOf(t, "", set("aud", []string{"https://kubernetes.default.svc"})),
		"for one other audience":   tokenOf(t, "", set("aud", "https://kubernetes.default.svc")),
		"without an audience":      tokenOf(t, "", set("aud", nil)),
		"that has expired":         tokenOf(t, "", set("exp", time.Now().Add(-2*clockSkew).Unix())),
		"that never expires":       tokenOf(t, "", set("exp", nil)),
		"of a service account":     tokenOf(t, "", set("kubernetes.io", map[string]any{"namespace": "ns"})),
		"of a pod without its UID": tokenOf(t, "", set("kubernetes.io", map[string]any{"pod": map[string]any{"name": "p"}})),
	} {
		if _, err := identify(t.Context(), token); !errors.Is(err, errUnknown) || reviewed > 0 {
			t.Fatalf("a token %s: error %v after %d reviews, want errUnknown without a review", name, err, reviewed)
		}
	}
	for name, token := range map[string]string{
		"with one audience":     tokenOf(t, "", set("aud", protocol.Audience)),
		"with two audiences":    tokenOf(t, "", set("aud", []string{"other", protocol.Audience})),
		"that has just expired": tokenOf(t, "", set("exp", time.Now().Unix()-1)),
	} {
		if _, err := identify(t.Context(), token); err != nil {
			t.Errorf("a token %s: %v", name, err)
		}
	}
}

// TestReviewsAreBounded: while the API server does not answer, requests neither pile up nor wait for long.
func TestReviewsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 3 * maxTurns
		var running, most, busy, slow atomic.Int64
		identify := byTokenReview(reviews(func(ctx context.Context,
			_ *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			<-ctx.Done()
			return nil, ctx.Err()
		}), clock.RealClock{})
		for i := range requests {
			token := tokenOf(t, fmt.Sprint(i), nil)
			go func() {
				switch _, err := identify(t.Context(), token); {
				case errors.Is(err, errBusy):
					busy.Add(1)
				case errors.Is(err, context.DeadlineExceeded):
					slow.Add(1)
				}
			}()
		}
		synctest.Wait()
		if running.Load() != maxReviews || busy.Load() != requests-maxTurns {
			t.Errorf("at once: %d reviews and %d refusals, want %d and %d", running.Load(), busy.Load(), maxReviews,
				requests-maxTurns)
		}
		time.Sleep(turnTimeout)
		synctest.Wait()
		if busy.Load() != requests-maxReviews {
			t.Errorf("after %s: %d refusals, want %d", turnTimeout, busy.Load(), requests-maxReviews)
		}
		time.Sleep(reviewTimeout)
		synctest.Wait()
		if slow.Load() != maxReviews || most.Load() != maxReviews {
			t.Errorf("%d reviews timed out and %d ran at once, want %d each", slow.Load(), most.Load(), maxReviews)
		}
	})
}
