/* Scripts and styles from web/, put into the program by src/present/meson.build. */
#pragma once

#include <stddef.h>

extern const unsigned char web_flame_svg[]; /* the script of an SVG file */
extern const size_t web_flame_svg_bytes;
extern const unsigned char web_page_js[]; /* the script of the HTML page */
extern const size_t web_page_js_bytes;
extern const unsigned char web_page_css[];
extern const size_t web_page_css_bytes;
extern const unsigned char web_run_page_js[]; /* the same with tabs, of report.html */
extern const size_t web_run_page_js_bytes;
extern const unsigned char web_run_page_css[];
extern const size_t web_run_page_css_bytes;
