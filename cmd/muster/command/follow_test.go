package command

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestUnauthorizedMessageSaysToStartAgain(t *testing.T) {
	want := "muster: no such token: log in again and restart this command; the output shows the last known state"
	if got := answerMessage(apierrors.NewUnauthorized("no such token")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
