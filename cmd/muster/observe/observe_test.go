package observe

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

func TestAClusterWithoutTheQueueAPIIsNamedAsSuch(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
		case "/apis":
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
		}
	}))
	defer server.Close()
	cluster, err := Open(t.Context(), &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.See(context.Background(), Scope{}); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("See: %v, want ErrNotInstalled", err)
	}
	if _, err := cluster.Watch(context.Background(), Scope{}); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("Watch: %v, want ErrNotInstalled", err)
	}
}
