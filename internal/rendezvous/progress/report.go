package progress

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// Bounds of a report, as in Trainer's definition of TrainJob.
const (
	// MaxBytes is the largest body of a report.
	MaxBytes = 64 << 10
	// maxMetrics is how many metrics a report has at most, and maxMetricLength how many characters a metric's name or
	// value.
	maxMetrics, maxMetricLength = 256, 64
)

// Request is the body of a report, and of the answer to it.
type Request struct {
	TrainerStatus *Status `json:"trainerStatus,omitempty"`
}

// Status is what training code says of its progress. All fields are optional.
type Status struct {
	ProgressPercentage        *int64   `json:"progressPercentage,omitempty"`
	EstimatedRemainingSeconds *int64   `json:"estimatedRemainingSeconds,omitempty"`
	Metrics                   []Metric `json:"metrics,omitempty"`
	// LastUpdatedTime is the time by the clock of the pod. It is checked, and used for nothing.
	LastUpdatedTime *time.Time `json:"lastUpdatedTime,omitempty"`
}

// Metric is a measured value, such as the loss.
type Metric struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Parse reads the body of a report, and returns an error for users if it is invalid. Unknown fields are left out.
func Parse(body []byte) (Request, error) {
	var request Request
	if err := json.Unmarshal(body, &request); err != nil {
		return Request{}, fmt.Errorf("reading the report: %w", err)
	}
	if request.TrainerStatus == nil {
		return request, nil
	}
	return request, request.TrainerStatus.check()
}

// check returns an error that names the first invalid field.
func (s *Status) check() error {
	if err := within("progressPercentage", s.ProgressPercentage, 100); err != nil {
		return err
	}
	if err := within("estimatedRemainingSeconds", s.EstimatedRemainingSeconds, math.MaxInt32); err != nil {
		return err
	}
	if len(s.Metrics) > maxMetrics {
		return fmt.Errorf("trainerStatus.metrics: %d metrics, at most %d are allowed", len(s.Metrics), maxMetrics)
	}
	for i, metric := range s.Metrics {
		for field, text := range map[string]string{"name": metric.Name, "value": metric.Value} {
			if n := utf8.RuneCountInString(text); n < 1 || n > maxMetricLength {
				return fmt.Errorf("trainerStatus.metrics[%d].%s: %d characters, want 1 to %d", i, field, n, maxMetricLength)
			}
		}
	}
	return nil
}

// within returns an error if the value is there and not from 0 to most.
func within(field string, value *int64, most int64) error {
	if value != nil && (*value < 0 || *value > most) {
		return fmt.Errorf("trainerStatus.%s: %d, want 0 to %d", field, *value, most)
	}
	return nil
}
