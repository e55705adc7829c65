/* Rows of the table of exporters: pictures. */
#pragma once

#include "present/exporters.h"

extern const struct exporter exporter_flame;  /* .svg, root at the bottom */
extern const struct exporter exporter_icicle; /* .icicle.svg, root on top */
extern const struct exporter exporter_html;   /* .html, a page */
