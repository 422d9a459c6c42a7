package admission

import (
	"time"

	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/podspec"
)

var quantities = admissiontest.Quantities

// newSceneTranslator returns a translator that has observed nothing yet.
func newSceneTranslator() *translate.Translator {
	return translate.New(podspec.Counting{}, translate.QueuePolicy{}, 5*time.Second)
}
