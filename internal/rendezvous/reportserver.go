package rendezvous

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/rendezvous/progress"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// errInvalidReport is returned for reports with invalid values.
var errInvalidReport = errors.New("invalid report")

// report answers a report of progress, as Trainer's server does. A connection has one report: reports are few, and a
// pod's connection is its agent's.
func (s *server) report(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "application/json")
	answer, err := s.takeReport(w, r)
	if err != nil {
		s.refuseReport(w, r, err)
		return
	}
	_ = json.NewEncoder(w).Encode(answer) // training code that misses the answer reports again
}

// takeReport records the report, and returns what was understood of it.
func (s *server) takeReport(w http.ResponseWriter, r *http.Request) (progress.Request, error) {
	agent, err := s.identify(r.Context(), bearer(r))
	switch {
	case err != nil:
		return progress.Request{}, err
	case !s.leads():
		return progress.Request{}, errDeposed
	case agent.Namespace != r.PathValue("namespace"):
		return progress.Request{}, errOtherJob
	}
	from, err := s.reports.reporterOf(r.Context(), agent, r.PathValue("name"))
	if err != nil {
		return progress.Request{}, err
	}
	if err := s.reports.admit(from); err != nil {
		return progress.Request{}, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, progress.MaxBytes))
	if err != nil {
		return progress.Request{}, err
	}
	report, err := progress.Parse(body)
	if err != nil {
		return progress.Request{}, errors.Join(errInvalidReport, err)
	}
	s.reports.take(from, report.TrainerStatus)
	return report, nil
}

// refuseReport answers a report that is not taken by a Status of Kubernetes.
func (s *server) refuseReport(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return
	}
	tooLarge := (*http.MaxBytesError)(nil)
	code, reason, text := http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error()
	switch {
	case errors.Is(err, errUnknown), errors.Is(err, errOtherJob):
		code, reason = http.StatusForbidden, metav1.StatusReasonForbidden
	case errors.Is(err, errNoJob):
		code, reason = http.StatusNotFound, metav1.StatusReasonNotFound
	case errors.As(err, &tooLarge):
		code, reason = http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge
	case errors.Is(err, errInvalidReport):
		code, reason = http.StatusUnprocessableEntity, metav1.StatusReasonInvalid
	case errors.Is(err, errTooOften):
		code, reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	case errors.Is(err, errBusy), errors.Is(err, errDeposed):
	default:
		s.logged.Do(func() { s.log.Error(err, "taking a report of progress") })
		code, reason, text = http.StatusInternalServerError, metav1.StatusReasonInternalError, "the operator could not answer"
	}
	answerStatus(w, code, reason, text)
}

// noPath answers requests for other paths.
func noPath(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	answerStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound,
		"no such path: POST progress to "+protocol.ReportPath)
}

// answerStatus answers a Status of Kubernetes.
func answerStatus(w http.ResponseWriter, code int, reason metav1.StatusReason, text string) {
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(retrySeconds))
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // training code that misses the answer reports again
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: text,
	})
}
