/* doctor_box.h - the doctor's real boxes; for doctor.c alone. */
#ifndef HUTCH_BOX_DOCTOR_BOX_H
#define HUTCH_BOX_DOCTOR_BOX_H

#include "box/doctor.h"

/* Builds a box, attempts in it what it must refuse; fills box_ran, error, receipt and denials. */
int doctor_attempt(const struct doctor_program *program, struct doctor_report *report,
                   struct hutch_error *err);
/* A script in each language, where its interpreter is and boxes can be had. */
int doctor_try_languages(bool box_ran, struct findings *findings, struct hutch_error *err);

#endif
