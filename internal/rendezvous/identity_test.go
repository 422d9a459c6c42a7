package rendezvous

import (
	"errors"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

func goodReview() authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{protocol.Audience},
		User: authenticationv1.UserInfo{Username: "system:serviceaccount:ns:default", Extra: map[string]authenticationv1.ExtraValue{
			podNameClaim: {"p"}, podUIDClaim: {"u"},
		}},
	}
}

func TestTokenIdentifiesOnlyItsPod(t *testing.T) {
	for name, spoil := range map[string]func(*authenticationv1.TokenReviewStatus){
		"not authenticated":    func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false },
		"for another audience": func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"https://kubernetes.default.svc"} },
		"without an audience":  func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil },
		"of a user":            func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "alice" },
		"of no pod":            func(s *authenticationv1.TokenReviewStatus) { s.User.Extra = nil },
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

func TestTokenReviewIsCached(t *testing.T) {
	clientset := fake.NewClientset()
	reviews := 0
	clientset.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		reviews++
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		if len(review.Spec.Audiences) != 1 || review.Spec.Audiences[0] != protocol.Audience {
			t.Errorf("reviewed audiences = %q", review.Spec.Audiences)
		}
		if review.Spec.Token == "good" {
			review.Status = goodReview()
		}
		return true, review, nil
	})
	identify := byTokenReview(clientset.AuthenticationV1().TokenReviews())
	for range 3 {
		if _, err := identify(t.Context(), "good"); err != nil {
			t.Fatal(err)
		}
	}
	if reviews != 1 {
		t.Errorf("one token was reviewed %d times, want once", reviews)
	}
	for range 2 {
		if _, err := identify(t.Context(), "bad"); !errors.Is(err, errUnknown) {
			t.Errorf("an invalid token: got error %v, want errUnknown", err)
		}
	}
	if reviews != 3 {
		t.Errorf("reviews = %d, want 3: a rejected token is reviewed again", reviews)
	}
	if _, err := identify(t.Context(), ""); !errors.Is(err, errUnknown) || reviews != 3 {
		t.Errorf("no token: got error %v after %d reviews, want errUnknown without a review", err, reviews)
	}
}
