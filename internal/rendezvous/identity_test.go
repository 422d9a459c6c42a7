package rendezvous

import (
	"context"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestATokenProvesItsPodAlone(t *testing.T) {
	for name, spoil := range map[string]func(*authenticationv1.TokenReviewStatus){
		"not authenticated":        func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false },
		"for somebody else":        func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"https://kubernetes.default.svc"} },
		"for nobody in particular": func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil },
		"of a person":              func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "alice" },
		"of no pod":                func(s *authenticationv1.TokenReviewStatus) { s.User.Extra = nil },
	} {
		status := goodReview()
		if who, err := podOf(&status); err != nil || who != (Who{"ns", "p", "u"}) {
			t.Fatalf("a good token is of %+v, %v", who, err)
		}
		spoil(&status)
		if who, err := podOf(&status); !errors.Is(err, ErrUnknown) {
			t.Errorf("a token %s is of %+v, %v", name, who, err)
		}
	}
}

func TestATokenIsReviewedOnceInAWhile(t *testing.T) {
	clients := fake.NewClientset()
	reviews := 0
	clients.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		reviews++
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		if len(review.Spec.Audiences) != 1 || review.Spec.Audiences[0] != protocol.Audience {
			t.Errorf("asked about the audiences %q", review.Spec.Audiences)
		}
		if review.Spec.Token == "good" {
			review.Status = goodReview()
		}
		return true, review, nil
	})
	identify := ByTokenReview(clients.AuthenticationV1().TokenReviews())
	for range 3 {
		if _, err := identify(t.Context(), "good"); err != nil {
			t.Fatal(err)
		}
	}
	if reviews != 1 {
		t.Errorf("one token was reviewed %d times", reviews)
	}
	for range 2 {
		if _, err := identify(t.Context(), "bad"); !errors.Is(err, ErrUnknown) {
			t.Errorf("a bad token: %v", err)
		}
	}
	if reviews != 3 {
		t.Errorf("a token that was refused is not asked about again")
	}
	if _, err := identify(t.Context(), ""); !errors.Is(err, ErrUnknown) || reviews != 3 {
		t.Errorf("no token: %v after %d reviews", err, reviews)
	}
}

func TestTheCertificateIsMadeOnce(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("muster-system")
	now := time.Now()
	_, first, err := Certificate(context.Background(), secrets, now)
	if err != nil {
		t.Fatal(err)
	}
	certificate, second, err := Certificate(context.Background(), secrets, now.Add(time.Hour))
	if err != nil || first != second {
		t.Fatalf("another operator has another certificate, or none: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(second))
	if _, err := certificate.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: protocol.ServerName, CurrentTime: now.Add(10 * 365 * 24 * time.Hour)}); err != nil {
		t.Errorf("ten years on: %v", err)
	}
	broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: SecretName}}
	if _, err := secrets.Update(context.Background(), broken, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Certificate(context.Background(), secrets, now); err == nil {
		t.Error("a Secret without a certificate is taken")
	}
}
