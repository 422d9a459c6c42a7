package command

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestUnauthorizedMessageSaysToStartAgain(t *testing.T) {
	want := "muster: no such token: log in again and start this command anew; what is shown is as of before"
	if got := answerMessage(apierrors.NewUnauthorized("no such token")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
