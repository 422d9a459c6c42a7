package operators

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/musterhq/muster/test/bench/operator"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestSecureMetricsRequireAuthorization: whose token RBAC lets get the path, and for nobody else; profiles are no
// metrics.
func TestSecureMetricsRequireAuthorization(t *testing.T) {
	w := newWorld(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	w.Shared(role, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: "reader"}}})
	reader, other := w.token("reader"), w.token("other")

	address := operator.FreeAddress(t)
	w.operate("--metrics-bind-address="+address, "--metrics-secure", "--profiling").AwaitReady(t)
	untilListens(t, address)
	for what, c := range map[string]struct {
		token, path string
		want        int
	}{
		"no token": {"", "/metrics", http.StatusUnauthorized},
		// what controller-runtime answers
		"a token of nobody's":                 {"nobody", "/metrics", http.StatusInternalServerError},
		"a token of who may not":              {other, "/metrics", http.StatusForbidden},
		"a token of who may":                  {reader, "/metrics", http.StatusOK},
		"profiles, for who may get metrics":   {reader, "/debug/pprof/heap", http.StatusForbidden},
		"the command line, without any token": {"", "/debug/pprof/cmdline", http.StatusUnauthorized},
	} {
		status, body := fetch(t, "https://"+address+c.path, c.token)
		if status != c.want {
			t.Errorf("%s: %d, want %d: %s", what, status, c.want, body)
		}
		if told := strings.Contains(body, "controller_runtime_"); told != (c.want == http.StatusOK) {
			t.Errorf("%s: metrics are told: %t", what, told)
		}
	}
}

// token makes a service account, and gives one of its.
func (w *world) token(account string) string {
	w.Helper()
	o := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: account}}
	w.Create(o)
	request := &authenticationv1.TokenRequest{}
	if err := w.Client.SubResource("token").Create(w.Context(), o, request); err != nil {
		w.Fatalf("asking for a token of %s: %v", account, err)
	}
	return request.Status.Token
}

// untilListens waits until somebody speaks TLS at the address.
func untilListens(t *testing.T, address string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, harness.Patience,
		true, func(ctx context.Context) (bool, error) {
			connection, err := (&tls.Dialer{Config: ofNobody}).DialContext(ctx, "tcp", address)
			if err != nil {
				return false, nil // there is nothing to subscribe to
			}
			return true, connection.Close()
		})
	if err != nil {
		t.Fatalf("waiting until metrics are served: %v", err)
	}
}

// ofNobody takes any certificate: the operator signs its own for metrics.
var ofNobody = &tls.Config{InsecureSkipVerify: true}

// fetch gets a page with a token, where there is one.
func fetch(t *testing.T, url, token string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: ofNobody,
		DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
